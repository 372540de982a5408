#include "launch/log_follower.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/error.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kChunk = 64 * 1024;  // bytes; what a pipe holds by default

}  // namespace

LogFollower::LogFollower(EventLoop& loop, OutputStream& stream, std::string path, LogText text)
    : loop_(loop), stream_(stream), path_(std::move(path)), text_(std::move(text)) {
  file_.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_) throw file_error(errno, "following", path_);
}

void LogFollower::start_at(std::int64_t place) { ::lseek(file_.get(), place, SEEK_SET); }

void LogFollower::look() {
  if (!waiting_) copy_some();
}

// One chunk per turn of the loop, so that a flood of text leaves room for everything else.
void LogFollower::copy_some() {
  waiting_ = read_chunk();
  if (!waiting_) return;
  const auto next = [this] { loop_.call_at(Clock::now(), [this] { copy_some(); }); };
  if (stream_.idle())
    next();
  else
    stream_.when_idle(next);
}

bool LogFollower::read_chunk() {
  std::string chunk(kChunk, '\0');
  const ssize_t count = ::read(file_.get(), chunk.data(), chunk.size());
  if (count <= 0) return false;
  chunk.resize(static_cast<std::size_t>(count));
  stream_.write(text_.take(chunk, Clock::now()));
  return true;
}

bool LogFollower::finish(const Patience& patience) {
  const bool all = copy_rest(patience);
  file_.reset();
  return all;
}

bool LogFollower::copy_rest(const Patience& patience) {
  while (true) {
    if (!stream_.drain(patience)) return false;
    if (!read_chunk()) break;
  }
  stream_.write(text_.finish());
  return stream_.drain(patience);
}

}  // namespace fleetrun::launch
