#include "launch/logs/log_disk.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::launch {
namespace {

constexpr std::uintmax_t kAmple = 20'000'000'000;  // bytes; more than ranks write between two looks
constexpr auto kTellEvery = std::chrono::minutes(1);
constexpr std::uintmax_t kPageOfLog = 64 * 1024;  // bytes
constexpr std::uintmax_t kPagesOfDisk = 16;       // at least, also on a small one

bool is_disk_full(const std::string& path) {
  std::error_code problem;
  const std::filesystem::space_info space = std::filesystem::space(path, problem);
  return !problem && space.available < std::min(kPageOfLog, space.capacity / kPagesOfDisk);
}

constexpr std::string_view kFull = "log disk full";

}  // namespace

std::string why_logs_lose_lines(const LogFolder& logs) {
  if (logs.is_removed()) return fmt::format("{}/ was removed", logs.path());
  if (is_disk_full(logs.path())) return std::string(kFull);
  const int problem = logs.problem_of_writing();
  if (problem == ENOSPC) return std::string(kFull);
  return problem == 0 ? "" : fmt::format("{}/ cannot be written: {}", logs.path(), describe_errno(problem));
}

LogDisk::LogDisk(const LogFolder& logs, std::function<void(std::string_view line)> say)
    : logs_(logs), say_(std::move(say)) {
  std::error_code problem;
  const std::filesystem::space_info space = std::filesystem::space(logs_.path(), problem);
  if (!problem && space.available < kAmple) logs_.reserve();
}

void LogDisk::look() {
  const std::string why = why_logs_lose_lines(logs_);
  if (why.empty()) return;
  const bool full = why == kFull;
  was_full_ |= full;
  if (why == told_ && Clock::now() - told_at_ < kTellEvery) return;
  told_ = why;
  told_at_ = Clock::now();
  say_(full ? fmt::format("{}: lines of the ranks that do not fit in {}/ are missing on the console, too",
                          why, logs_.path())
       : logs_.is_removed() ? fmt::format("{}: the logs and the report of this run are lost", why)
                            : fmt::format("{}: lines of the ranks are lost", why));
}

}  // namespace fleetrun::launch
