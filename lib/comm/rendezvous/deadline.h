// A point in time until which somebody waits, and how long the wait was to be, for the error that names it.
#pragma once
#include <algorithm>
#include <chrono>

namespace fleetrun::comm {

class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds from_now)
      : end_(std::chrono::steady_clock::now() + from_now), total_(from_now) {}

  std::chrono::milliseconds remaining() const {  // never below zero
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
    return std::max(left, std::chrono::milliseconds(0));
  }
  bool passed() const { return remaining().count() == 0; }
  // Call it at each look of a wait that looks several times a second. Seconds between two looks mean that this process stood still, as
  // after Ctrl-Z or in a frozen container: that time does not count.
  void look(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) {
    constexpr std::chrono::seconds kStandstill{2};
    if (now - looked_ > kStandstill) end_ += now - looked_;
    looked_ = now;
  }
  double total_seconds() const { return std::chrono::duration<double>(total_).count(); }
  std::chrono::steady_clock::time_point end() const { return end_; }

 private:
  std::chrono::steady_clock::time_point end_;
  std::chrono::milliseconds total_;
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
};

}  // namespace fleetrun::comm
