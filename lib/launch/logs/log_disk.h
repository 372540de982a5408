// Tells when the disk of the logs is full or can no longer be written. Workers write their logs themselves, so that we can only look now and
// then.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "launch/logs/log_folder.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

// Why the ranks cannot write to their logs now: "log disk full", "log/ cannot be written: Read-only file system (errno 30)", "log/ was
// removed". "": they can, or the disk cannot be asked. A disk is full when it has less than 64 KiB, or than a sixteenth of itself if it is below 1 MiB.
std::string why_logs_lose_lines(const LogFolder& logs);

class LogDisk {
 public:
  static constexpr auto kInterval = std::chrono::seconds(10);  // between two looks

  // Keeps room for the report at once where it may be needed soon. Elsewhere a short run does without: to give it back can take a busy disk
  // 10 ms.
  LogDisk(const LogFolder& logs, std::function<void(std::string_view line)> say);

  void look();
  bool was_full() const { return was_full_; }  // some time since the beginning

 private:
  const LogFolder& logs_;
  std::function<void(std::string_view line)> say_;
  bool was_full_ = false;
  std::string told_;  // the last trouble, and when it was told
  TimePoint told_at_;
};

}  // namespace fleetrun::launch
