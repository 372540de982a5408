// The log that says why a rank failed, up to where the rank wrote it: what its helpers write after its death, as when fleetrun asks them
// to end, says something else.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "launch/logs/growing_file.h"
#include "launch/logs/log_folder.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/timer.h"
#include "launch/supervise/process_group.h"
#include "launch/supervise/verdict.h"

namespace fleetrun::launch {

struct EndOfLog {
  LogFile log;
  off_t size = 0;      // bytes, when the last words of the rank had arrived
  off_t at_death = 0;  // bytes, when the death of the rank was noticed; 0: not known
};
// As it is now. stderr, where it is apart and says something.
EndOfLog end_of_log(const Attempt& attempt, const LogFolder& logs, int rank);

// What a rank had written when the first one failed, here or elsewhere.
struct LogOfRank {
  int rank = 0;              // of this node
  std::int64_t written = 0;  // the time of the last write before that, in ns since 1970
  std::int64_t silent = 0;   // how long before that it was, in ns
  EndOfLog end;
};

// Notes the length of the log when the last words of the rank that failed have arrived there. Also notes the lengths of the logs of the ranks
// that had not failed by then: what they write later may only answer the signal that ends them.
class LastWords {
 public:
  // For what the rank has written into a pipe, such as that of `tee`.
  static constexpr auto kTimeToArrive = std::chrono::milliseconds(250);

  LastWords(EventLoop& loop, const Attempt& attempt, const LogFolder& logs);  // all outlive it

  void begin_attempt();
  void look(const Verdict& verdict);  // at each event: has a rank failed?
  // Call it before you ask what the ranks have left to end. Waits until kTimeToArrive after the failure if anything is left.
  void finish(const ProcessGroup& group);
  const std::optional<EndOfLog>& found() const { return found_; }  // none: no rank has failed
  std::vector<LogOfRank> logs_of_others() const;                   // of ranks that had not failed by then

 private:
  void note();
  void note_others(const Verdict& verdict);

  struct OfFile {
    off_t size = 0;            // bytes
    std::int64_t written = 0;  // see LogOfRank
  };
  static OfFile look_at(const UniqueFd& file);
  struct Sizes {
    int rank = 0;
    OfFile log, errors;
  };
  const Attempt& attempt_;
  const LogFolder& logs_;
  std::optional<int> rank_;  // that failed
  std::optional<EndOfLog> at_death_;
  TimePoint failed_;
  Timer timer_;
  std::optional<EndOfLog> found_;
  std::optional<std::vector<Sizes>> others_;  // none: the attempt goes on
  std::int64_t others_noted_ = 0;             // when, in ns since 1970
};

}  // namespace fleetrun::launch
