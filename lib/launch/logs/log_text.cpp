#include "launch/logs/log_text.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text/utf8.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestUnfinished = 8192;          // bytes; longer ones are passed on in pieces
constexpr std::size_t kLongestSearched = 1024 * 1024;     // the same, of lines that a pattern has to match
constexpr auto kProgressPause = std::chrono::seconds(1);  // between two states of one progress bar
constexpr char kEscape = '\x1b';
constexpr char kBell = '\a';

bool is_between(char letter, char first, char last) { return letter >= first && letter <= last; }

// A loop without a way out, which the compiler turns into vector instructions. 0xc2 may begin one of U+0080 to U+009f,
// which terminals take for control characters.
bool is_plain(std::string_view text) {
  unsigned control = 0;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    control |= static_cast<unsigned>(code < 0x20 && code != '\n' && code != '\t') |
               static_cast<unsigned>(code == 0x7f) | static_cast<unsigned>(code == 0xc2);
  }
  return control == 0;
}

bool is_high_control(std::string_view text, std::size_t at) {
  return text[at] == '\xc2' && at + 1 < text.size() && is_between(text[at + 1], '\x80', '\x9f');
}

// The place after the escape sequence that begins at `start` (ECMA-48).
std::size_t end_of_escape(std::string_view text, std::size_t start) {
  std::size_t at = start + 1;
  if (at == text.size()) return at;
  const char kind = text[at++];
  if (kind == '[') {
    while (at < text.size() && is_between(text[at], ' ', '?')) ++at;  // parameters
    return std::min(at + 1, text.size());
  }
  if (std::string_view("]PX^_").find(kind) != std::string_view::npos) {  // up to BEL or ESC backslash
    while (at < text.size() && text[at] != kBell && text[at] != kEscape) ++at;
    if (at < text.size() && text[at] == kEscape) ++at;
    return std::min(at + 1, text.size());
  }
  if (is_between(kind, ' ', '/')) {
    while (at < text.size() && is_between(text[at], ' ', '/')) ++at;
    return std::min(at + 1, text.size());
  }
  return at;
}

}  // namespace

std::string clean_line(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const auto rewritten = line.rfind('\r');
  if (rewritten != std::string_view::npos) line.remove_prefix(rewritten + 1);
  if (is_plain(line)) return std::string(line);
  std::string clean;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == kEscape) {
      at = end_of_escape(line, at);
      continue;
    }
    const bool high = is_high_control(line, at);
    const auto code = static_cast<unsigned char>(line[at]);
    clean += high || (code < 0x20 && code != '\t') || code == 0x7f ? '?' : line[at];
    at += high ? 2 : 1;
  }
  return clean;
}

LogText::LogText(std::function<std::string()> prefix, std::function<bool(const std::string& line)> wanted)
    : prefix_(std::move(prefix)), wanted_(std::move(wanted)) {}

std::string LogText::take(std::string_view bytes, TimePoint now) {
  if (bytes.empty()) return "";
  if (std::exchange(broken_, false) && unfinished_.empty() && bytes.front() == '\n') bytes.remove_prefix(1);
  const auto last_end = bytes.rfind('\n');
  std::string text;
  if (last_end == std::string_view::npos) {
    unfinished_ += bytes;
  } else {
    const std::string_view whole = bytes.substr(0, last_end + 1);
    if (unfinished_.empty())
      text = show(whole);
    else
      text = show(std::exchange(unfinished_, "").append(whole));
    unfinished_ = bytes.substr(last_end + 1);
  }
  if (keeps_bar_)
    forget_old_states();
  else
    show_progress(now, text);
  if (unfinished_.size() > (wanted_ ? kLongestSearched : kLongestUnfinished)) text += show_part();
  return text;
}

// What stands in front of a carriage return is complete; what follows it will replace it.
void LogText::show_progress(TimePoint now, std::string& text) {
  const auto rewritten = unfinished_.rfind('\r');
  if (rewritten == std::string::npos || rewritten == 0 || now < shown_progress_ + kProgressPause) return;
  const std::string state = clean_line(std::string_view(unfinished_).substr(0, rewritten));
  if (state.empty()) return;
  shown_progress_ = now;
  text += show(state + "\n");
  unfinished_.erase(0, rewritten + 1);
}

// The last state may be incomplete, so the one before stays, too.
void LogText::forget_old_states() {
  std::size_t end = unfinished_.rfind('\r');
  if (end == std::string::npos) return;
  while (end > 0 && unfinished_[end - 1] == '\r') --end;
  const std::size_t before = end == 0 ? std::string::npos : unfinished_.rfind('\r', end - 1);
  if (before != std::string::npos) unfinished_.erase(0, before + 1);
}

std::string LogText::bar() const {
  const auto rewritten = unfinished_.rfind('\r');
  if (!keeps_bar_ || rewritten == std::string::npos) return "";
  const std::string state = clean_line(unfinished_);
  return state.empty() || !prefix_ ? state : prefix_() + state;
}

std::string LogText::show_part() {
  const std::size_t whole = whole_utf8_characters(unfinished_, unfinished_.size());
  std::string rest = unfinished_.substr(whole);
  unfinished_.resize(whole);
  broken_ = prefix_ || wanted_;
  std::string part = broken_ ? end_line() : finish();
  unfinished_ = std::move(rest);
  return part;
}

std::string LogText::end_line() {
  if (unfinished_.empty()) return "";
  unfinished_ += '\n';
  return show(std::exchange(unfinished_, ""));
}

std::string LogText::finish() { return prefix_ ? end_line() : show(std::exchange(unfinished_, "")); }

std::string LogText::show(std::string_view lines) const {
  if (!prefix_ && !wanted_ && is_plain(lines)) return std::string(lines);
  const std::string prefix = prefix_ ? prefix_() : "";
  std::string text;
  text.reserve(lines.size() + prefix.size());
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string line = clean_line(lines.substr(0, end));
    const bool has_end = end < lines.size();
    if (!wanted_ || wanted_(line)) text += prefix + line + (has_end ? "\n" : "");
    lines.remove_prefix(has_end ? end + 1 : end);
  }
  return text;
}

}  // namespace fleetrun::launch
