#include "base/run/timeline.h"

#include <array>
#include <chrono>
#include <utility>

namespace fleetrun {

std::string_view describe(Lane lane) {
  constexpr std::array<std::string_view, kLanes> kNames = {
      "compute",        "communication",        "data",          "loader", "checkpoint",
      "device compute", "device communication", "device kernels"};
  return kNames.at(static_cast<std::size_t>(lane));
}

std::int64_t monotonic_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

Timeline::Label Timeline::add(SpanLabel label) {
  const std::lock_guard lock(mutex_);
  labels_.push_back(std::move(label));
  return static_cast<Label>(labels_.size() - 1);
}

void Timeline::open(std::size_t most_spans) {
  const std::lock_guard lock(mutex_);
  spans_.clear();
  spans_.reserve(most_spans);
  most_ = most_spans;
  left_out_ = 0;
  open_ = true;
}

void Timeline::close() {
  const std::lock_guard lock(mutex_);
  open_ = false;
}

void Timeline::note(Label label, std::int64_t start_ns, std::int64_t end_ns) {
  if (!is_open()) return;
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  if (spans_.size() == most_)
    ++left_out_;
  else
    spans_.push_back({label, step_.load(std::memory_order_relaxed), start_ns, end_ns});
}

}  // namespace fleetrun
