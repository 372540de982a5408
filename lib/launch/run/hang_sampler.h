// Looks at the ranks again and again and asks the HangWatch what it thinks.
#pragma once
#include <string>
#include <vector>

#include "base/progress_page.h"
#include "launch/cli/log_rule.h"
#include "launch/logs/growing_file.h"
#include "launch/loop/event_loop.h"
#include "launch/supervise/hang_rules.h"
#include "launch/supervise/process_group.h"

namespace fleetrun::launch {

class HangMonitor {
 public:
  struct Options {
    HangOptions watch;
    std::vector<LogRule> rules;              // in the order of watch.rules
    std::vector<std::vector<LogFile>> logs;  // of each rank
  };

  // `group` and `pages` (none, or one per rank) outlive it. Does nothing when there is nothing to watch.
  HangMonitor(EventLoop& loop, Options options, ProcessGroup& group,
              const std::vector<ProgressPagePtr>& pages);

  void follow_new_logs();  // a new attempt has begun
  void pause() { paused_ = true; }
  void resume();

 private:
  struct LogTail {  // what the rules have not seen yet
    GrowingFile file;
    std::string unfinished;
  };

  void look_later();
  void look();
  HangSample sample();
  RankSample sample_rank(std::size_t rank) const;
  void match_rules(LogTail& tail, std::vector<bool>& matched) const;

  EventLoop& loop_;
  Options options_;
  ProcessGroup& group_;
  const std::vector<ProgressPagePtr>& pages_;
  HangWatch watch_;
  std::vector<std::vector<LogTail>> tails_;  // of each rank
  bool paused_ = false;
};

}  // namespace fleetrun::launch
