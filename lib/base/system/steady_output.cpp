#include "base/system/steady_output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"

namespace fleetrun {
namespace {

constexpr std::size_t kMostWaiting = 4096;  // bytes

}  // namespace

void SteadyOutput::keep_lost_in(LostText& lost) {
  const std::lock_guard lock(mutex_);
  lost_text_ = &lost;
}

SteadyOutput::int_type SteadyOutput::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  const char one = traits_type::to_char_type(character);
  add({&one, 1});
  return character;
}

std::streamsize SteadyOutput::xsputn(const char* text, std::streamsize count) {
  add({text, static_cast<std::size_t>(count)});
  return count;
}

int SteadyOutput::sync() {
  const std::lock_guard lock(mutex_);
  write_waiting();
  return 0;
}

void SteadyOutput::add(std::string_view text) {
  const std::lock_guard lock(mutex_);
  waiting_.append(text);
  if (waiting_.size() >= kMostWaiting) write_waiting();
}

void SteadyOutput::write_waiting() {
  const bool has_room = lost_ == 0 || waiting_.empty() || say_what_was_lost();
  const std::size_t written = has_room ? write_some(waiting_) : 0;
  lost_ += waiting_.size() - written;
  if (lost_text_ != nullptr && written < waiting_.size()) keep_lines_from(written);
  waiting_.clear();
}

// The whole line, also if a part of it was written.
void SteadyOutput::keep_lines_from(std::size_t place) {
  const std::string_view text = waiting_;
  const std::size_t line = place == 0 ? 0 : text.rfind('\n', place - 1) + 1;
  end_of_lost_ = lost_text_->add(text.substr(line));
}

bool SteadyOutput::say_what_was_lost() {
  const std::string note = fmt::format("\n[{} of this output could not be written here: {}]\n",
                                       plural(lost_, "byte"), describe_errno(problem_));
  if (write_some(note) < note.size()) return false;
  lost_ = 0;
  if (lost_text_ != nullptr) lost_text_->forget_before(end_of_lost_);
  return true;
}

// The number of bytes that were written.
std::size_t SteadyOutput::write_some(std::string_view text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(fd_, text.data() + written, text.size() - written);
    if (count >= 0) {
      written += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      problem_ = errno;
      break;
    }
  }
  return written;
}

}  // namespace fleetrun
