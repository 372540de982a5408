// How long each log was at which time, in log/.times: workers write straight to their files, without times, and
// `fleetrun logs` asks for them, to merge the logs and for --since. An entry for each log that grew, at most every second, and every 5 s
// in a long run.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/system/unique_fd.h"
#include "launch/logs/log_folder.h"
#include "launch/loop/event_loop.h"

namespace fleetrun::launch {

class LogTimes {
 public:
  static constexpr auto kPause = std::chrono::seconds(5);  // 13 MB a day for 32 ranks that write all the time
  static constexpr auto kFirstPause = std::chrono::seconds(1);  // until there are so many entries
  static constexpr std::size_t kManyEntries = 1 << 20;          // bytes

  // `logs`: what stands after "workerlog." in their names. `on_shorter` gets that of a log in which there
  // is less than before; a file that took the place of the log is none of the ranks'.
  LogTimes(
      EventLoop& loop, const LogFolder& folder, std::vector<std::string> logs,
      std::function<void(const std::string& log)> on_shorter = [](const std::string&) {});

  void begin_attempt();  // the logs are empty
  void look();           // some log may have grown
  void finish();         // nothing is written to the logs any more

 private:
  void write();

  EventLoop& loop_;
  const LogFolder& folder_;
  std::vector<std::string> logs_;
  struct Seen {
    std::uint64_t inode = 0;
    std::int64_t size = 0;
  };
  std::vector<Seen> seen_;  // of each log, as of its last entry
  std::function<void(const std::string& log)> on_shorter_;
  UniqueFd file_;
  std::size_t written_ = 0;  // bytes of entries
  bool waiting_ = false;
};

// Calls `visit` for each entry, in the order of time.
void visit_log_times(const std::string& folder,
                     const std::function<void(const std::string& log, std::int64_t size)>& visit);

// By log, "0" or "0.err": the place up to which everything was written before `time`, by the entries of the folder; what follows may be
// up to 5 s older. 0 without an entry. Reads the entries from the last one back to the first that it needs.
using LogPlaces = std::map<std::string, std::int64_t>;
LogPlaces places_in_logs(const std::string& folder, const std::set<std::string>& logs,
                         std::chrono::system_clock::time_point time);

}  // namespace fleetrun::launch
