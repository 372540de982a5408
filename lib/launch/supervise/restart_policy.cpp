#include "launch/supervise/restart_policy.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/exit_codes.h"

namespace fleetrun::launch {
namespace {

constexpr int kMostFruitless = 3;  // attempts that fail at once: a fourth would, too

}  // namespace

bool worth_restarting(const RestartPolicy& policy, int exit_code) {
  const auto repeats = [&](const ExitCode& row) { return row.code == exit_code && row.repeats; };
  return std::ranges::none_of(exit_codes(), repeats) &&
         std::ranges::find(policy.never_after, exit_code) == policy.never_after.end();
}

std::string no_restart_is_left(const RestartPolicy& policy) {
  return fmt::format("fleetrun: no restart is left (--max_restart={})\n", policy.most);
}

bool RestartCounter::is_inside_window(TimePoint began, TimePoint now) const {
  return policy_.window && began > now - *policy_.window;
}

bool RestartCounter::has_spent_all(TimePoint now) const {
  if (!policy_.window) return restarts() >= policy_.most;
  const auto counts = [&](TimePoint began) { return is_inside_window(began, now); };
  return std::ranges::count_if(began_, counts) >= policy_.most;
}

std::vector<Clock::duration> RestartCounter::ages_inside_window(TimePoint now) const {
  std::vector<Clock::duration> ages;
  for (const TimePoint began : began_)
    if (is_inside_window(began, now)) ages.push_back(now - began);
  return ages;
}

bool RestartCounter::made_progress(Clock::duration lived, std::optional<std::int64_t> step) {
  if (!step) return lived >= policy_.settled;
  const bool further = *step > best_step_.value_or(0);
  best_step_ = std::max(*step, best_step_.value_or(0));
  return further;
}

std::optional<Clock::duration> RestartCounter::after(int exit_code, Clock::duration lived, TimePoint now,
                                                     std::optional<std::int64_t> step) {
  if (forbidden_) return std::nullopt;
  fruitless_ = made_progress(lived, step) ? 0 : fruitless_ + 1;
  if (!worth_restarting(policy_, exit_code)) return std::nullopt;
  if (has_spent_all(now) || fruitless_ >= kMostFruitless) {
    crash_loop_ = restarts() > 0 && fruitless_ > 0;
    return std::nullopt;
  }
  began_.push_back(now);
  Clock::duration delay = policy_.first_delay;
  for (int i = 1; i < fruitless_ && delay < policy_.longest_delay; ++i) delay *= 2;
  return std::min(delay, policy_.longest_delay);
}

bool RestartCounter::after_loss(TimePoint now) {
  if (forbidden_ || has_spent_all(now)) return false;
  began_.push_back(now);
  forget_steps();
  return true;
}

}  // namespace fleetrun::launch
