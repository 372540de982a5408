#include "launch/console/output_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"

namespace fleetrun::launch {
namespace {

constexpr int kLookForInterrupt_ms = 50;  // a pause that nobody notices between Ctrl-C and the end

bool has_room(int fd, int timeout_ms) {
  pollfd one{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&one, 1, timeout_ms) > 0;
}

// A file on a full disk takes text again when there is room.
bool may_pass(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

}  // namespace

OutputStream::OutputStream(EventLoop& loop, int fd) : loop_(loop), terminal_(::isatty(fd) == 1) { open(fd); }

OutputStream::~OutputStream() {
  if (fd_) loop_.forget(fd_.get());
}

// O_NONBLOCK belongs to the open file, which others share: our parent's shell would find its terminal
// changed. So a pipe or terminal is opened once more, for us alone.
void OutputStream::open(int fd) {
  struct stat facts {};
  const int flags = ::fcntl(fd, F_GETFL);
  if (::fstat(fd, &facts) != 0 || (flags & O_ACCMODE) == O_RDONLY) {  // main fills closed ones like that
    broken_ = true;
    problem_ = EBADF;
    return;
  }
  if (S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode)) {
    const std::string path = fmt::format("/proc/self/fd/{}", fd);
    fd_.reset(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (fd_) kind_ = Kind::nonblocking;
  }
  if (fd_) return;
  fd_.reset(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  kind_ = S_ISSOCK(facts.st_mode) ? Kind::socket : Kind::shared;
  broken_ = !fd_;
}

long OutputStream::try_write(std::string_view text) const {
  ssize_t count = 0;
  do {
    if (kind_ == Kind::socket) {
      count = ::send(fd_.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (kind_ == Kind::nonblocking) {
      count = ::write(fd_.get(), text.data(), text.size());
    } else {
      // A pipe that is writable takes PIPE_BUF bytes without blocking; a regular file never blocks.
      if (!has_room(fd_.get(), 0)) return 0;
      count = ::write(fd_.get(), text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    }
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) return 0;
  return count;
}

void OutputStream::write(std::string_view text) {
  if (broken_ || text.empty()) return;
  if (lost_ > 0 && !say_what_was_lost()) {
    lost_ += text.size();
    return;
  }
  if (before_write_ && !held_) before_write_();
  waiting_.append(text);
  if (waiting_.size() == text.size()) flush();  // else the loop is already waiting for room
}

void OutputStream::write_of_rank(std::string_view text) {
  if (!text.empty()) in_line_ = text.back() != '\n';
  write(text);
}

bool OutputStream::say_what_was_lost() {
  const std::string note = fmt::format("\n[fleetrun could not write {} of its output here: {}]\n",
                                       plural(lost_, "byte"), describe_errno(problem_));
  if (try_write(note) <= 0) return false;
  lost_ = 0;
  return true;
}

void OutputStream::release() {
  if (!std::exchange(held_, false) || waiting_.empty()) return;
  if (before_write_) before_write_();
  flush();
}

void OutputStream::flush() {
  if (held_) return;
  std::string_view left = waiting_;
  while (!left.empty()) {
    const long count = try_write(left);
    if (count == 0) break;
    if (count < 0) {
      problem_ = errno;
      broken_ = !may_pass(problem_);
      lost_ += left.size();
    }
    left.remove_prefix(count < 0 ? left.size() : static_cast<std::size_t>(count));
  }
  waiting_ = std::string(left);
  if (!waiting_.empty())
    loop_.when_writable(fd_.get(), [this] { flush(); });
  else
    for (const auto& callback : std::exchange(on_idle_, {})) callback();
}

bool OutputStream::has_lost_reader() const {
  pollfd one{.fd = fd_.get(), .events = 0, .revents = 0};
  return ::poll(&one, 1, 0) > 0 && (one.revents & (POLLERR | POLLHUP)) != 0;
}

bool OutputStream::drain(const Patience& patience) {
  release();  // it is the end
  TimePoint deadline = Clock::now() + patience.without_progress;
  while (!waiting_.empty()) {
    const std::size_t before = waiting_.size();
    if (has_room(fd_.get(), kLookForInterrupt_ms)) flush();
    if (waiting_.size() < before) deadline = Clock::now() + patience.without_progress;
    if (Clock::now() >= deadline || patience.interrupted()) return waiting_.empty();
  }
  return true;
}

}  // namespace fleetrun::launch
