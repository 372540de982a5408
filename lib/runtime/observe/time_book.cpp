#include "runtime/observe/time_book.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

namespace fleetrun::runtime {
namespace {

constexpr std::int64_t kWhole = 1000;  // tenths of a percent
constexpr auto kRestart = static_cast<std::size_t>(TimeUse::restart);
constexpr auto kIdle = static_cast<std::size_t>(TimeUse::idle);

std::int64_t sum_of(const TimeUses& times) {
  return std::accumulate(times.begin(), times.end(), std::int64_t{0});
}

}  // namespace

TimeBook::TimeBook(ProgressPage& page, std::int64_t now_ns)
    : page_(page), start_ns_(page.run_start_ns != 0 ? page.run_start_ns.load() : now_ns) {}

bool TimeBook::begin(int attempt, std::int64_t place, std::int64_t now_ns) {
  if (attempt == 0) return false;
  bool goes_on = false;
  for (KeptTime& kept : page_.kept) {
    if (kept.place > place) kept.place = -1;  // the steps up to it are lost
    if (kept.place != place) continue;
    goes_on = true;
    for (std::size_t use = 0; use < kTimeUses; ++use) spent_[use] = kept.spent_ns[use];
  }
  spent_[kRestart] += std::max<std::int64_t>(0, now_ns - start_ns_ - sum_of(spent_));
  return goes_on;
}

TimeUses TimeBook::until(std::int64_t now_ns) const {
  TimeUses times = spent_;
  times[kIdle] += std::max<std::int64_t>(0, now_ns - start_ns_ - sum_of(spent_));
  return times;
}

void TimeBook::publish(std::int64_t now_ns) {
  const TimeUses times = until(now_ns);
  for (std::size_t use = 0; use < kTimeUses; ++use)
    page_.spent_ns[use].store(times[use], std::memory_order_relaxed);
}

// In the place of the older one of the two.
void TimeBook::keep(std::int64_t place, std::int64_t now_ns) {
  const TimeUses times = until(now_ns);
  KeptTime& kept = page_.kept[0].place <= page_.kept[1].place ? page_.kept[0] : page_.kept[1];
  kept.place = -1;  // until it is whole
  for (std::size_t use = 0; use < kTimeUses; ++use) kept.spent_ns[use] = times[use];
  kept.place = place;
}

// The largest remainders are rounded up.
std::array<int, kTimeUses> shares_of(const TimeUses& times) {
  const std::int64_t all = std::max<std::int64_t>(1, sum_of(times));
  std::array<int, kTimeUses> shares{};
  std::array<std::size_t, kTimeUses> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto exact = [&](std::size_t use) {
    return static_cast<double>(times[use]) * static_cast<double>(kWhole) / static_cast<double>(all);
  };
  for (const std::size_t use : order) shares[use] = static_cast<int>(exact(use));
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return exact(a) - shares[a] > exact(b) - shares[b]; });
  const auto missing = static_cast<std::size_t>(
      sum_of(times) == 0 ? 0 : kWhole - std::accumulate(shares.begin(), shares.end(), 0));
  for (std::size_t i = 0; i < std::min(missing, kTimeUses); ++i) ++shares[order[i]];
  return shares;
}

std::string describe_time(const TimeUses& times, int ranks) {
  const std::array<int, kTimeUses> shares = shares_of(times);
  std::string text = "goodput: ";
  for (std::size_t use = 0; use < kTimeUses; ++use)
    text += fmt::format("{}{} {}.{} %", use == 0 ? "" : ", ", kTimeUseNames[use], shares[use] / 10,
                        shares[use] % 10);
  return text + fmt::format(" of {:.1f} s", static_cast<double>(sum_of(times)) / ranks / 1e9);
}

}  // namespace fleetrun::runtime
