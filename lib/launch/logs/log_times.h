// How long each log was at which time, in log/.times: workers write straight to their files, without times, and
// `fleetrun logs --since` asks for them. One entry at most every 5 s, none while nothing is written.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/system/unique_fd.h"
#include "launch/logs/log_folder.h"
#include "launch/loop/event_loop.h"

namespace fleetrun::launch {

class LogTimes {
 public:
  static constexpr auto kPause = std::chrono::seconds(5);  // 13 MB a day for 32 ranks that write all the time

  // `logs`: what stands after "workerlog." in their names.
  LogTimes(EventLoop& loop, const LogFolder& folder, std::vector<std::string> logs);

  void begin_attempt();  // the logs are empty
  void look();           // some log may have grown

 private:
  void write();

  EventLoop& loop_;
  const LogFolder& folder_;
  std::vector<std::string> logs_;
  std::vector<std::int64_t> sizes_;
  UniqueFd file_;
  bool waiting_ = false;
};

// The place in a log, "0" or "0.err", up to which everything was written before `time`, by the entries of the folder;
// what follows may be up to 5 s older.
std::int64_t place_in_log(const std::string& folder, const std::string& log,
                          std::chrono::system_clock::time_point time);

}  // namespace fleetrun::launch
