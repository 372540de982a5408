#include "launch/log_disk.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "launch/death_evidence.h"

namespace fleetrun::launch {
namespace {

constexpr auto kLookEvery = std::chrono::seconds(10);
constexpr auto kTellEvery = std::chrono::minutes(1);

}  // namespace

LogDisk::LogDisk(EventLoop& loop, std::string folder, std::function<void(std::string_view line)> say)
    : loop_(loop), folder_(std::move(folder)), say_(std::move(say)) {
  look_later();
}

void LogDisk::look() {
  if (!is_disk_full(folder_)) return;
  if (std::exchange(was_full_, true) && Clock::now() - told_ < kTellEvery) return;
  told_ = Clock::now();
  say_(fmt::format("log disk full: lines of the ranks that do not fit in {}/ are lost", folder_));
}

void LogDisk::look_later() {
  loop_.call_at(Clock::now() + kLookEvery, [this] {
    look();
    look_later();
  });
}

}  // namespace fleetrun::launch
