#include "launch/supervise/restart_policy.h"

#include <algorithm>

#include "base/error/exit_codes.h"

namespace fleetrun::launch {
namespace {

constexpr int kMostFruitless = 3;  // attempts that fail at once: a fourth would, too

}  // namespace

bool worth_restarting(int exit_code) {
  return std::ranges::none_of(exit_codes(),
                              [&](const ExitCode& row) { return row.code == exit_code && row.repeats; });
}

std::optional<Clock::duration> RestartCounter::after(int exit_code, Clock::duration lived) {
  if (forbidden_) return std::nullopt;
  fruitless_ = lived < policy_.settled ? fruitless_ + 1 : 0;
  if (!worth_restarting(exit_code)) return std::nullopt;
  if (restarts_ >= policy_.most || fruitless_ >= kMostFruitless) {
    crash_loop_ = restarts_ > 0 && fruitless_ > 0;
    return std::nullopt;
  }
  ++restarts_;
  Clock::duration delay = policy_.first_delay;
  for (int i = 1; i < fruitless_ && delay < policy_.longest_delay; ++i) delay *= 2;
  return std::min(delay, policy_.longest_delay);
}

bool RestartCounter::after_loss() {
  if (forbidden_ || restarts_ >= policy_.most) return false;
  ++restarts_;
  return true;
}

}  // namespace fleetrun::launch
