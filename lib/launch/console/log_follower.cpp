#include "launch/console/log_follower.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error/error.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kChunk = 64 * 1024;  // bytes; what a pipe holds by default

}  // namespace

LogFollower::LogFollower(EventLoop& loop, OutputStream& stream, const LogFile& file, LogText text)
    : loop_(loop), stream_(stream), file_(file), text_(std::move(text)) {
  if (!file_.is_open()) throw file_error(errno, "following", file.path);
}

void LogFollower::start_at(std::int64_t place) { file_.go_to(place); }

void LogFollower::look() {
  if (!waiting_) copy_some();
}

// One chunk per turn of the loop, so that a flood of text leaves room for everything else.
void LogFollower::copy_some() {
  waiting_ = read_chunk(kChunk);
  if (!waiting_) return show_by_now();
  const auto next = [this] { loop_.call_at(Clock::now(), [this] { copy_some(); }); };
  if (stream_.idle())
    next();
  else
    stream_.when_idle(next);
}

// At the end of the file.
void LogFollower::show_by_now() {
  if (const std::string text = text_.take("", Clock::now()); !text.empty()) stream_.write_of_rank(text);
  if (!text_.waits() || std::exchange(looks_later_, true)) return;
  loop_.call_at(Clock::now() + RedrawnRows::kFinishedAfter, [this] {
    looks_later_ = false;
    if (file_.is_open()) look();
  });
}

bool LogFollower::read_chunk(std::size_t most) {
  if (stream_.is_broken()) {  // a flood of text for nobody would cost a core
    file_.go_to(file_.size());
    return false;
  }
  if (file_.begins_anew()) stream_.write_of_rank(text_.end_line());
  const std::string chunk = file_.read(most);
  if (chunk.empty()) return false;
  stream_.write_of_rank(text_.take(chunk, Clock::now()));
  return true;
}

bool LogFollower::copy_to(std::int64_t place, const Patience& patience) {
  while (file_.place() < place) {
    const std::int64_t rest = place - file_.place();
    if (!stream_.drain(patience)) return false;
    if (!read_chunk(static_cast<std::size_t>(std::min<std::int64_t>(rest, kChunk)))) return true;
  }
  return true;
}

bool LogFollower::finish(const Patience& patience) {
  const bool all = copy_rest(patience);
  file_.close();
  return all;
}

// A reader that keeps up leaves nothing to drain, so the patience is looked at here, too.
bool LogFollower::copy_rest(const Patience& patience) {
  while (true) {
    if (!stream_.drain(patience)) return false;
    if (!read_chunk(kChunk)) break;
    if (file_.place() < file_.size() && patience.interrupted()) return false;
  }
  stream_.write_of_rank(text_.finish());
  return stream_.drain(patience);
}

}  // namespace fleetrun::launch
