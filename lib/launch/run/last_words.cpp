#include "launch/run/last_words.h"

#include "launch/evidence/log_cause.h"
#include "launch/logs/last_lines.h"

namespace fleetrun::launch {

EndOfLog end_of_log(const Attempt& attempt, const LogFolder& logs, int rank) {
  const auto place = static_cast<std::size_t>(rank);
  if (const UniqueFd& errors = attempt.error_logs.at(place)) {
    const LogFile log = file_behind(errors, logs.find_error_log(rank));
    if (const off_t size = GrowingFile(log).size(); size > 0) return {log, size, size};
  }
  const LogFile log = file_behind(attempt.logs.at(place), logs.find_worker_log(rank));
  const off_t size = GrowingFile(log).size();
  return {log, size, size};
}

std::string words_of(const EndOfLog& end, const ExitStatus& status, const std::string& script,
                     std::size_t most) {
  std::string at_death = read_log_end(end.log, most, end.at_death);
  const bool has_more = end.size > end.at_death && find_log_cause(at_death, status, script).what.empty();
  return has_more ? read_log_end(end.log, most, end.size) : at_death;
}

LastWords::LastWords(EventLoop& loop, const Attempt& attempt, const LogFolder& logs)
    : attempt_(attempt), logs_(logs), timer_(loop) {}

void LastWords::begin_attempt() {
  timer_.cancel();
  rank_.reset();
  found_.reset();
}

// What a rank leaves that somebody ended with a signal is asked to end, too, LeftOfRanks::kTimeToFollow later.
void LastWords::look(const Verdict& verdict) {
  if (rank_ || !verdict.rank) return;
  static_assert(kTimeToArrive < LeftOfRanks::kTimeToFollow);
  rank_ = verdict.rank;
  failed_ = Clock::now();
  at_death_ = end_of_log(attempt_, logs_, *rank_).size;
  const bool leaves = verdict.ranks.at(static_cast<std::size_t>(*rank_)).leaves_processes;
  timer_.call_at(failed_ + (leaves ? kTimeToArrive : kMostTime), [this] { note(); });
}

void LastWords::finish(const ProcessGroup& group) {
  if (!rank_ || found_) return;
  group.wait_for_left(failed_ + kTimeToArrive);
  note();
}

void LastWords::note() {
  timer_.cancel();
  found_ = end_of_log(attempt_, logs_, *rank_);
  found_->at_death = at_death_;
}

}  // namespace fleetrun::launch
