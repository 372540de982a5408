#include "launch/run/last_words.h"

namespace fleetrun::launch {

EndOfLog end_of_log(const Attempt& attempt, const LogFolder& logs, int rank) {
  const auto place = static_cast<std::size_t>(rank);
  if (const UniqueFd& errors = attempt.error_logs.at(place)) {
    const LogFile log = file_behind(errors, logs.find_error_log(rank));
    if (const off_t size = GrowingFile(log).size(); size > 0) return {.log = log, .size = size};
  }
  const LogFile log = file_behind(attempt.logs.at(place), logs.find_worker_log(rank));
  return {.log = log, .size = GrowingFile(log).size()};
}

LastWords::LastWords(EventLoop& loop, const Attempt& attempt, const LogFolder& logs)
    : attempt_(attempt), logs_(logs), timer_(loop) {}

void LastWords::begin_attempt() {
  timer_.cancel();
  rank_.reset();
  at_death_.reset();
  found_.reset();
}

// What a rank leaves that somebody ended with a signal is asked to end, too, LeftOfRanks::kTimeToFollow later.
void LastWords::look(const Verdict& verdict) {
  if (rank_ || !verdict.rank) return;
  static_assert(kTimeToArrive < LeftOfRanks::kTimeToFollow);
  rank_ = verdict.rank;
  failed_ = Clock::now();
  at_death_ = end_of_log(attempt_, logs_, *rank_);
  timer_.call_at(failed_ + kTimeToArrive, [this] { note(); });
}

void LastWords::finish(const ProcessGroup& group) {
  if (!rank_ || found_) return;
  group.wait_for_left(failed_ + kTimeToArrive);
  note();
}

void LastWords::note() {
  timer_.cancel();
  found_ = end_of_log(attempt_, logs_, *rank_);
  if (at_death_ && found_->log.path == at_death_->log.path) found_->at_death = at_death_->size;
}

}  // namespace fleetrun::launch
