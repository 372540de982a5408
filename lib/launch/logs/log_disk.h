// Tells when the disk of the logs is full, and keeps room for the report when it may become so. Workers write their logs
// themselves, so that we can only look now and then.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "launch/logs/log_folder.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

// Whether the disk of a file has no room for more of a log: less than 64 KiB, or a sixteenth of a disk that is below 1 MiB.
// False when the disk cannot be asked.
bool is_disk_full(const std::string& path);

class LogDisk {
 public:
  static constexpr auto kInterval = std::chrono::seconds(10);  // between two looks

  LogDisk(const LogFolder& logs, std::function<void(std::string_view line)> say);

  void look();
  bool was_full() const { return was_full_; }  // some time since the beginning

 private:
  void keep_room() const;

  const LogFolder& logs_;
  std::function<void(std::string_view line)> say_;
  bool was_full_ = false;
  TimePoint told_;
};

}  // namespace fleetrun::launch
