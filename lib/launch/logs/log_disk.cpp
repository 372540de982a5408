#include "launch/logs/log_disk.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

namespace fleetrun::launch {
namespace {

constexpr std::uintmax_t kAmple = 20'000'000'000;  // bytes; more than ranks write between two looks
constexpr auto kTellEvery = std::chrono::minutes(1);
constexpr std::uintmax_t kPageOfLog = 64 * 1024;  // bytes
constexpr std::uintmax_t kPagesOfDisk = 16;       // at least, also on a small one

}  // namespace

bool is_disk_full(const std::string& path) {
  std::error_code problem;
  const std::filesystem::space_info space = std::filesystem::space(path, problem);
  return !problem && space.available < std::min(kPageOfLog, space.capacity / kPagesOfDisk);
}

LogDisk::LogDisk(const LogFolder& logs, std::function<void(std::string_view line)> say)
    : logs_(logs), say_(std::move(say)) {
  keep_room();
}

void LogDisk::look() {
  keep_room();
  if (!is_disk_full(logs_.path())) return;
  if (std::exchange(was_full_, true) && Clock::now() - told_ < kTellEvery) return;
  told_ = Clock::now();
  say_(fmt::format("log disk full: lines of the ranks that do not fit in {}/ are lost", logs_.path()));
}

// Only where it may be needed: to give it back can take a busy disk 10 ms.
void LogDisk::keep_room() const {
  std::error_code problem;
  const std::filesystem::space_info space = std::filesystem::space(logs_.path(), problem);
  if (!problem && space.available < kAmple) logs_.reserve();
}

}  // namespace fleetrun::launch
