#include "launch/logs/log_times.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/file.h"
#include "launch/logs/log_names.h"

namespace fleetrun::launch {
namespace {

using WallClock = std::chrono::system_clock;

constexpr std::size_t kMostTimes = 1 << 30;  // bytes

std::int64_t milliseconds_of(WallClock::time_point time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

}  // namespace

LogTimes::LogTimes(EventLoop& loop, const LogFolder& folder, std::vector<std::string> logs,
                   std::function<void(const std::string& log)> on_shorter)
    : loop_(loop),
      folder_(folder),
      logs_(std::move(logs)),
      seen_(logs_.size()),
      on_shorter_(std::move(on_shorter)) {}

void LogTimes::begin_attempt() {
  seen_.assign(logs_.size(), {});
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
    if (!found || found->size == seen_[i].size) continue;
    const Seen before = std::exchange(seen_[i], {found->inode, found->size});
    if (found->size < before.size && found->inode == before.inode) on_shorter_(logs_[i]);
    const std::int64_t now = milliseconds_of(WallClock::now());
    entries += fmt::format("{}.{:03} {} {}\n", now / 1000, now % 1000, logs_[i], found->size);
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

// The lines of a file from the last one to the first. None if it cannot be read or is not a regular file.
class LinesBackwards {
 public:
  explicit LinesBackwards(const std::string& path)
      : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    struct stat status {};
    if (::fstat(file_.get(), &status) == 0 && S_ISREG(status.st_mode)) place_ = status.st_size;
  }

  bool next(std::string_view& line) {
    while (true) {
      const std::size_t end = text_.rfind('\n', end_ == 0 ? std::string::npos : end_ - 1);
      if (end_ > 0 && end != std::string::npos) {
        line = std::string_view(text_).substr(end + 1, end_ - end - 1);
        end_ = end;
        return true;
      }
      if (place_ > 0 && read_more()) continue;
      line = std::string_view(text_).substr(0, end_);
      return std::exchange(end_, 0) > 0;
    }
  }

 private:
  // Puts the piece before those lines in front of them.
  bool read_more() {
    constexpr off_t kPiece = 64 << 10;
    const off_t count = std::min(place_, kPiece);
    std::string piece(static_cast<std::size_t>(count), '\0');
    if (::pread(file_.get(), piece.data(), piece.size(), place_ - count) != count) {
      place_ = 0;
      return false;
    }
    place_ -= count;
    text_ = piece + text_.substr(0, end_);
    end_ = text_.size();
    return true;
  }

  UniqueFd file_;
  off_t place_ = 0;   // what follows is in text_ or has been given
  std::string text_;  // of which the first end_ bytes have not been given
  std::size_t end_ = 0;
};

struct Entry {
  std::int64_t time;  // ms
  std::int64_t size;  // bytes
  std::string_view log;
};

// "1764250000.123 0.err 4096". Earlier versions wrote whole seconds: such an entry may be of any time within its second.
std::optional<Entry> parse_entry(std::string_view line) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const auto number = [](std::string_view digits, std::int64_t& value) {
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return problem == std::errc() && end == digits.data() + digits.size();
  };
  Entry entry = {.time = 0, .size = 0, .log = line.substr(first + 1, last - first - 1)};
  const std::string_view time = line.substr(0, first);
  const std::size_t point = std::min(time.find('.'), time.size());
  std::int64_t seconds = 0, fraction = 999;
  if (!number(time.substr(0, point), seconds) || !number(line.substr(last + 1), entry.size) ||
      (point < time.size() && !number(time.substr(point + 1), fraction)))
    return std::nullopt;
  entry.time = seconds * 1000 + fraction;
  return entry;
}

}  // namespace

void visit_log_times(const std::string& folder,
                     const std::function<void(const std::string& log, std::int64_t size)>& visit) {
  std::istringstream file = read_times(folder);
  std::int64_t size = 0;
  for (std::string time, log; file >> time >> log >> size;) visit(log, size);
}

LogPlaces places_in_logs(const std::string& folder, const std::set<std::string>& logs,
                         WallClock::time_point time) {
  LogPlaces places;
  for (const std::string& log : logs) places[log] = 0;
  std::set<std::string, std::less<>> left(logs.begin(), logs.end());
  LinesBackwards lines(fmt::format("{}/{}", folder, kTimesName));
  for (std::string_view line; !left.empty() && lines.next(line);) {
    const std::optional<Entry> entry = parse_entry(line);
    if (!entry || entry->time > milliseconds_of(time)) continue;
    const auto log = left.find(entry->log);
    if (log == left.end()) continue;
    places[*log] = entry->size;
    left.erase(log);
  }
  return places;
}

}  // namespace fleetrun::launch
