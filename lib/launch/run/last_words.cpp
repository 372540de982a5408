#include "launch/run/last_words.h"

#include <sys/stat.h>

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
  others_.reset();
}

// What a rank leaves that somebody ended with a signal is asked to end, too, LeftOfRanks::kTimeToFollow later.
void LastWords::look(const Verdict& verdict) {
  if (!others_ && (verdict.rank || ends_without_failure(verdict.cause))) note_others(verdict);
  if (rank_ || !verdict.rank) return;
  static_assert(kTimeToArrive < LeftOfRanks::kTimeToFollow);
  rank_ = verdict.rank;
  failed_ = Clock::now();
  at_death_ = end_of_log(attempt_, logs_, *rank_);
  timer_.call_at(failed_ + kTimeToArrive, [this] { note(); });
}

LastWords::OfFile LastWords::look_at(const UniqueFd& file) {
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) return {};
  return {facts.st_size, facts.st_mtim.tv_sec * std::int64_t{1'000'000'000} + facts.st_mtim.tv_nsec};
}

void LastWords::note_others(const Verdict& verdict) {
  others_.emplace();
  others_noted_ = std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  for (std::size_t rank = 0; rank < std::min(verdict.ranks.size(), attempt_.logs.size()); ++rank)
    if (const auto& status = verdict.ranks[rank].status; !status || status->ok())
      others_->push_back({.rank = static_cast<int>(rank),
                          .log = look_at(attempt_.logs[rank]),
                          .errors = look_at(attempt_.error_logs[rank])});
}

std::vector<LogOfRank> LastWords::logs_of_others() const {
  std::vector<LogOfRank> logs;
  if (!others_) return logs;
  for (const Sizes& sizes : *others_) {
    const auto place = static_cast<std::size_t>(sizes.rank);
    const bool apart = sizes.errors.size > 0;
    const OfFile& noted = apart ? sizes.errors : sizes.log;
    logs.push_back(
        {.rank = sizes.rank,
         .written = noted.written,
         .silent = others_noted_ - noted.written,
         .end = {.log = apart ? file_behind(attempt_.error_logs[place], logs_.find_error_log(sizes.rank))
                              : file_behind(attempt_.logs[place], logs_.find_worker_log(sizes.rank)),
                 .size = noted.size}});
  }
  return logs;
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
