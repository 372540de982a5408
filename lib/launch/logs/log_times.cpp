#include "launch/logs/log_times.h"

#include <sstream>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/file.h"
#include "launch/logs/log_names.h"

namespace fleetrun::launch {
namespace {

using WallClock = std::chrono::system_clock;

constexpr std::size_t kMostTimes = 1 << 30;  // bytes

std::int64_t seconds_of(WallClock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

}  // namespace

LogTimes::LogTimes(EventLoop& loop, const LogFolder& folder, std::vector<std::string> logs)
    : loop_(loop), folder_(folder), logs_(std::move(logs)), sizes_(logs_.size()) {}

void LogTimes::begin_attempt() {
  sizes_.assign(sizes_.size(), 0);
  written_ = 0;
  file_ = folder_.open_times();
}

// Later, so that one entry stands for everything that is written by then.
void LogTimes::look() {
  if (waiting_) return;
  waiting_ = true;
  const Clock::duration pause = written_ < kManyEntries ? kFirstPause : kPause;
  loop_.call_at(Clock::now() + pause, [this] {
    waiting_ = false;
    write();
  });
}

void LogTimes::finish() { write(); }

void LogTimes::write() {
  std::string entries;
  for (std::size_t i = 0; i < logs_.size(); ++i) {
    const auto found = folder_.look("workerlog." + logs_[i]);
    if (!found || found->size == sizes_[i]) continue;
    sizes_[i] = found->size;
    entries += fmt::format("{} {} {}\n", seconds_of(WallClock::now()), logs_[i], found->size);
  }
  written_ += entries.size();
  // Of a full disk others complain.
  if (!entries.empty()) [[maybe_unused]]
    const ssize_t count = ::write(file_.get(), entries.data(), entries.size());
}

namespace {

// The content of the file. An empty stream if it cannot be read or is not a regular file.
std::istringstream read_times(const std::string& folder) {
  try {
    return std::istringstream(read_file(fmt::format("{}/{}", folder, kTimesName), kMostTimes));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

void visit_log_times(const std::string& folder,
                     const std::function<void(const std::string& log, std::int64_t size)>& visit) {
  std::istringstream file = read_times(folder);
  std::int64_t time = 0, size = 0;
  for (std::string log; file >> time >> log >> size;) visit(log, size);
}

std::int64_t place_in_log(const std::string& folder, const std::string& log, WallClock::time_point time) {
  std::istringstream file = read_times(folder);
  std::int64_t place = 0, entry_time = 0, size = 0;
  for (std::string entry_log; file >> entry_time >> entry_log >> size;)
    if (entry_log == log && entry_time <= seconds_of(time)) place = size;
  return place;
}

}  // namespace fleetrun::launch
