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
  off_t size = 0;            // bytes, when the last words of the rank had arrived
  std::int64_t written = 0;  // the time of the last write before that, in ns since 1970
  off_t at_death = 0;        // bytes, when the death of the rank was noticed; 0: not known
};

// What a rank has written. If stderr is apart and says something, it comes first.
struct EndOfLogs {
  EndOfLog first;
  std::optional<EndOfLog> output;  // stdout, if `first` is stderr
};
EndOfLogs end_of_logs(const Attempt& attempt, const LogFolder& logs, int rank);  // as they are now

// What a rank had written when the first one failed, here or elsewhere.
struct LogOfRank {
  int rank = 0;             // of this node
  std::int64_t silent = 0;  // how long before that the last write was, in ns
  TimePoint written = {};   // when that was
  bool ended = false;       // with 0, before that
  bool went_on = false;     // the rank wrote to its other log long after that write
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
  // All ranks here have ended with 0, and a rank of another node may fail.
  void note_finished(const Verdict& verdict);
  // Call it before you ask what the ranks have left to end. Waits until kTimeToArrive after the failure if anything is left.
  void finish(const ProcessGroup& group);
  const std::optional<EndOfLogs>& found() const { return found_; }  // none: no rank has failed
  const std::vector<LogOfRank>& logs_of_others() const {
    return others_;
  }  // of ranks that had not failed by then

 private:
  void note();
  void note_others(const Verdict& verdict);

  const Attempt& attempt_;
  const LogFolder& logs_;
  std::optional<int> rank_;  // that failed
  std::optional<EndOfLogs> at_death_;
  TimePoint failed_;
  Timer timer_;
  std::optional<EndOfLogs> found_;
  bool has_noted_others_ = false;
  std::vector<LogOfRank> others_;
};

}  // namespace fleetrun::launch
