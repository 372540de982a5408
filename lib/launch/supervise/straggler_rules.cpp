#include "launch/supervise/straggler_rules.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fleetrun::launch {
namespace {

constexpr int kWindows = 4;               // in a row; noise seldom hits the same rank so often
constexpr std::uint64_t kLeastSteps = 5;  // of a window
constexpr double kLeastFactor = 1.2, kLeastShare = 0.1, kSpreads = 3;

// Of a window, in milliseconds per step.
struct OwnTime {
  double data = 0, compute = 0, communication = 0;
  double own() const { return data + compute; }
  double step() const { return own() + communication; }
};

OwnTime own_time(const StepTimes& before, const StepTimes& now) {
  const double steps = static_cast<double>(now.steps - before.steps) * 1e6;
  return {static_cast<double>(now.data_ns - before.data_ns) / steps,
          static_cast<double>(now.compute_ns - before.compute_ns) / steps,
          static_cast<double>(now.communication_ns - before.communication_ns) / steps};
}

// Of an even number the smaller one in the middle: of two ranks the faster one sets the standard.
double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <typename Value>
double median_of(const std::vector<OwnTime>& times, Value value) {
  std::vector<double> values;
  values.reserve(times.size());
  for (const OwnTime& time : times) values.push_back(value(time));
  return lower_median(std::move(values));
}

}  // namespace

std::vector<Straggler> slow_ranks(const std::vector<StepTimes>& before, const std::vector<StepTimes>& now) {
  std::vector<OwnTime> times;
  for (std::size_t rank = 0; rank < now.size(); ++rank) times.push_back(own_time(before[rank], now[rank]));
  std::vector<Straggler> found;
  if (times.size() < 2) return found;
  const double median = median_of(times, [](const OwnTime& time) { return time.own(); });
  const double spread = median_of(times, [&](const OwnTime& time) { return std::abs(time.own() - median); });
  const double step = median_of(times, [](const OwnTime& time) { return time.step(); });
  const double data = median_of(times, [](const OwnTime& time) { return time.data; });
  const double compute = median_of(times, [](const OwnTime& time) { return time.compute; });
  const double least =
      median + std::max({(kLeastFactor - 1) * median, kLeastShare * step, kSpreads * spread});
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    const OwnTime& time = times[rank];
    if (median <= 0 || time.own() <= least) continue;
    const bool by_data = time.data - data > time.compute - compute;
    found.push_back({.rank = static_cast<int>(rank),
                     .phase = by_data ? TimeUse::data : TimeUse::compute,
                     .own_ms = time.own(),
                     .median_ms = median});
  }
  return found;
}

std::vector<Straggler> StragglerRules::look(const std::vector<StepTimes>& ranks, TimePoint now) {
  const bool all_train =
      std::all_of(ranks.begin(), ranks.end(), [](const StepTimes& rank) { return rank.training; });
  if (!all_train || ranks.empty()) {
    opened_.reset();
    return {};
  }
  if (!opened_ || at_opening_.size() != ranks.size()) open_window(ranks, now);
  if (!window_is_over(ranks, now)) return {};
  const std::vector<Straggler> slow = slow_ranks(at_opening_, ranks);
  std::vector<int> windows(ranks.size());
  slow_windows_.resize(ranks.size());
  std::vector<Straggler> found;
  for (const Straggler& one : slow) {
    const auto rank = static_cast<std::size_t>(one.rank);
    windows[rank] = slow_windows_[rank] + 1;
    if (windows[rank] == kWindows && !told_.contains(one.rank)) {
      told_.insert(one.rank);
      found.push_back(one);
    }
  }
  slow_windows_ = std::move(windows);
  open_window(ranks, now);
  return found;
}

void StragglerRules::begin_attempt() {
  opened_.reset();
  slow_windows_.clear();
  told_.clear();
}

void StragglerRules::open_window(const std::vector<StepTimes>& ranks, TimePoint now) {
  opened_ = now;
  at_opening_ = ranks;
}

bool StragglerRules::window_is_over(const std::vector<StepTimes>& ranks, TimePoint now) const {
  if (now - *opened_ < after_ / kWindows) return false;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].steps < at_opening_[rank].steps + kLeastSteps) return false;
  return true;
}

}  // namespace fleetrun::launch
