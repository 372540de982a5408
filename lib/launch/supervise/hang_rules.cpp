#include "launch/supervise/hang_rules.h"

#include <algorithm>

#include <fmt/format.h>

namespace fleetrun::launch {
namespace {

constexpr double kIdleShare = 0.05;           // of a core: what timers of a waiting program take
constexpr double kIdleReading = 64.0 * 1024;  // bytes a second: what a waiting program's monitors read
constexpr int kMissedLooks = 5;               // so late, and it was us who were stopped, or the machine
constexpr std::size_t kStepTimes = 500;       // enough for a 99th percentile
constexpr int kStepFactor = 5;
constexpr auto kTick = std::chrono::milliseconds(10);  // in which the kernel counts processor time

bool goes_on(const Work& before, const Work& now, Clock::duration between) {
  const auto idle = std::chrono::duration_cast<Clock::duration>(kIdleShare * between);
  if (now.cpu_time - before.cpu_time > std::max<Clock::duration>(idle, kTick)) return true;
  if (now.bytes_written > before.bytes_written) return true;
  return now.bytes_read > before.bytes_read + static_cast<std::uint64_t>(kIdleReading * in_seconds(between));
}

}  // namespace

HangRules::HangRules(HangOptions options, int ranks)
    : options_(std::move(options)),
      ranks_(static_cast<std::size_t>(ranks)),
      matched_(options_.rules.size()) {}

std::optional<std::string> HangRules::look(const HangSample& sample, TimePoint now) {
  debugged_ = std::any_of(sample.ranks.begin(), sample.ranks.end(),
                          [](const RankSample& rank) { return rank.running && rank.debugged; });
  if (!last_look_ || debugged_ || now - *last_look_ > kMissedLooks * options_.look_every) {
    begin(sample, now);
    return std::nullopt;
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) remember(ranks_[i], sample.ranks.at(i), now);
  if (goes_on(detached_, sample.detached, now - *last_look_)) detached_active_ = now;
  detached_ = sample.detached;
  if (sample.elsewhere.excuses_steps || waits_for_disk(now)) excuse_others(now);
  last_look_ = now;
  if (std::none_of(ranks_.begin(), ranks_.end(), [](const RankMemory& rank) { return rank.last.running; }))
    return std::nullopt;
  if (auto why = judge_rules(sample, now)) return why;
  if (auto why = judge_steps(now)) return why;
  return judge_silence(sample.elsewhere, now);
}

void HangRules::begin(const HangSample& sample, TimePoint now) {
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    ranks_[i] = {.last = sample.ranks.at(i), .active = now, .not_stopped = now, .stepped = now, .alive = now};
  std::fill(matched_.begin(), matched_.end(), now);
  detached_ = sample.detached;
  detached_active_ = now;
  last_look_ = now;
}

void HangRules::remember(RankMemory& memory, const RankSample& sample, TimePoint now) {
  const RankSample& before = memory.last;
  const bool beats = sample.beat != before.beat, ends = before.running && !sample.running;
  if (beats || ends || sample.log_bytes != before.log_bytes ||
      goes_on(before.work, sample.work, now - *last_look_))
    memory.active = now;
  if (!sample.stopped) memory.not_stopped = now;
  if (beats || sample.training != before.training || sample.on_disk != before.on_disk) memory.alive = now;
  if (sample.step > before.step) {
    if (before.step > 0)
      step_times_.push_back((now - memory.stepped) / static_cast<int>(sample.step - before.step));
    if (step_times_.size() > kStepTimes) step_times_.pop_front();
    memory.stepped = now;
  }
  memory.last = sample;
}

bool HangRules::waits_for_disk(TimePoint now) const {
  return std::any_of(ranks_.begin(), ranks_.end(), [&](const RankMemory& rank) {
    return rank.last.running && rank.last.on_disk && now - rank.alive < disk_bound();
  });
}

void HangRules::excuse_others(TimePoint now) {
  for (RankMemory& rank : ranks_)
    if (!rank.last.on_disk) rank.alive = now;
}

SignsOfLife HangRules::signs() const {
  SignsOfLife signs;
  if (!last_look_) return signs;
  const auto latest = std::ranges::max_element(ranks_, {}, &RankMemory::active);
  if (latest != ranks_.end()) signs.silent = *last_look_ - std::max(latest->active, detached_active_);
  for (const TimePoint matched : matched_) signs.unmatched.push_back(*last_look_ - matched);
  signs.excuses_steps = debugged_ || waits_for_disk(*last_look_);
  return signs;
}

std::optional<std::string> HangRules::judge_silence(const SignsOfLife& elsewhere, TimePoint now) const {
  if (!options_.silence) return std::nullopt;
  bool all_silent = elsewhere.silent.value_or(*options_.silence) >= *options_.silence &&
                    now - detached_active_ >= *options_.silence;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const RankMemory& rank = ranks_[i];
    if (rank.last.running && now - rank.not_stopped >= *options_.silence)
      return fmt::format("rank {} is stopped for {:.3g} s", options_.first_rank + static_cast<int>(i),
                         in_seconds(now - rank.not_stopped));
    all_silent = all_silent && now - rank.active >= *options_.silence;
  }
  if (!all_silent) return std::nullopt;
  return fmt::format("no rank writes anything or works for {:g} s", in_seconds(*options_.silence));
}

std::optional<std::string> HangRules::judge_rules(const HangSample& sample, TimePoint now) {
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    if (sample.rules_matched.at(i)) matched_[i] = now;
    const auto& others = sample.elsewhere.unmatched;
    if (i < others.size() && others[i] < options_.rules[i].time) continue;
    if (now - matched_[i] >= options_.rules[i].time)
      return fmt::format("no line of any rank obeys --log_rule '{}'", options_.rules[i].name);
  }
  return std::nullopt;
}

std::optional<std::string> HangRules::judge_steps(TimePoint now) const {
  if (!options_.steps) return std::nullopt;
  const Clock::duration of_step = step_bound(), of_disk = std::max(of_step, disk_bound());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const RankMemory& rank = ranks_[i];
    const Clock::duration bound = rank.last.on_disk ? of_disk : of_step;
    if (!rank.last.running || !rank.last.training || now - rank.alive < bound) continue;
    return fmt::format("rank {} has made no progress since step {}, {:.3g} s ago",
                       options_.first_rank + static_cast<int>(i), rank.last.step,
                       in_seconds(now - rank.alive));
  }
  return std::nullopt;
}

Clock::duration HangRules::disk_bound() const { return options_.step_bound.value_or(options_.disk_bound); }

Clock::duration HangRules::step_bound() const {
  if (options_.step_bound) return *options_.step_bound;
  if (step_times_.empty()) return options_.first_step_bound;
  std::vector<Clock::duration> times(step_times_.begin(), step_times_.end());
  const auto p99 = times.begin() + static_cast<std::ptrdiff_t>(times.size() * 99 / 100);
  std::nth_element(times.begin(), p99, times.end());
  return std::max(options_.least_step_bound, kStepFactor * *p99);
}

}  // namespace fleetrun::launch
