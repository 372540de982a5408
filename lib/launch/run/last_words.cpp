#include "launch/run/last_words.h"

#include <sys/stat.h>

#include <algorithm>

namespace fleetrun::launch {
namespace {

constexpr std::int64_t kOneSecond = 1'000'000'000;  // ns
constexpr std::int64_t kLongAfter = 5 * kOneSecond;

EndOfLog end_of(const UniqueFd& file, const LogFile& name) {
  struct stat facts {};
  const bool found = file && ::fstat(file.get(), &facts) == 0;
  return {.log = file_behind(file, name),
          .size = found ? facts.st_size : 0,
          .written = facts.st_mtim.tv_sec * kOneSecond + facts.st_mtim.tv_nsec};
}

std::vector<const EndOfLog*> all_of(const EndOfLogs& ends) {
  std::vector<const EndOfLog*> all = {&ends.first};
  if (ends.output) all.push_back(&*ends.output);
  return all;
}

void note_death(EndOfLog& found, const EndOfLogs& at_death) {
  for (const EndOfLog* const end : all_of(at_death))
    if (found.log.path == end->log.path) found.at_death = end->size;
}

}  // namespace

EndOfLogs end_of_logs(const Attempt& attempt, const LogFolder& logs, int rank) {
  const auto place = static_cast<std::size_t>(rank);
  EndOfLog output = end_of(attempt.logs.at(place), logs.find_worker_log(rank));
  const UniqueFd& errors = attempt.error_logs.at(place);
  if (!errors) return {std::move(output), std::nullopt};
  EndOfLog first = end_of(errors, logs.find_error_log(rank));
  if (first.size == 0) return {std::move(output), std::nullopt};
  return {std::move(first), output.size > 0 ? std::optional(std::move(output)) : std::nullopt};
}

LastWords::LastWords(EventLoop& loop, const Attempt& attempt, const LogFolder& logs)
    : attempt_(attempt), logs_(logs), timer_(loop) {}

void LastWords::begin_attempt() {
  timer_.cancel();
  rank_.reset();
  at_death_.reset();
  found_.reset();
  has_noted_others_ = false;
  others_.clear();
}

// What a rank leaves that somebody ended with a signal is asked to end, too, LeftOfRanks::kTimeToFollow later.
void LastWords::look(const Verdict& verdict) {
  if (!has_noted_others_ && (verdict.rank || ends_without_failure(verdict.cause))) note_others(verdict);
  if (rank_ || !verdict.rank) return;
  static_assert(kTimeToArrive < LeftOfRanks::kTimeToFollow);
  rank_ = verdict.rank;
  failed_ = Clock::now();
  at_death_ = end_of_logs(attempt_, logs_, *rank_);
  timer_.call_at(failed_ + kTimeToArrive, [this] { note(); });
}

void LastWords::note_finished(const Verdict& verdict) {
  if (!has_noted_others_) note_others(verdict);
}

void LastWords::note_others(const Verdict& verdict) {
  has_noted_others_ = true;
  const std::int64_t now = std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  for (std::size_t rank = 0; rank < std::min(verdict.ranks.size(), attempt_.logs.size()); ++rank) {
    const auto& status = verdict.ranks[rank].status;
    if (status && !status->ok()) continue;
    const EndOfLogs ends = end_of_logs(attempt_, logs_, static_cast<int>(rank));
    const std::int64_t last = std::max(ends.first.written, ends.output ? ends.output->written : 0);
    for (const EndOfLog* const end : all_of(ends))
      others_.push_back({.rank = static_cast<int>(rank),
                         .silent = now - end->written,
                         .written = Clock::now() - std::chrono::nanoseconds(now - end->written),
                         .ended = status.has_value(),
                         .went_on = last - end->written > kLongAfter,
                         .end = *end});
  }
}

void LastWords::finish(const ProcessGroup& group) {
  if (!rank_ || found_) return;
  group.wait_for_left(failed_ + kTimeToArrive);
  note();
}

void LastWords::note() {
  timer_.cancel();
  found_ = end_of_logs(attempt_, logs_, *rank_);
  if (!at_death_) return;
  note_death(found_->first, *at_death_);
  if (found_->output) note_death(*found_->output, *at_death_);
}

}  // namespace fleetrun::launch
