#include "launch/logs/log_text.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text/utf8.h"
#include "launch/logs/escapes.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestUnfinished = 8192;          // bytes; longer ones are passed on in pieces
constexpr std::size_t kLongestSearched = 1024 * 1024;     // the same, of lines that a pattern has to match
constexpr auto kProgressPause = std::chrono::seconds(1);  // between two states of one progress bar

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
  if (text[at] != '\xc2' || at + 1 == text.size()) return false;
  const auto second = static_cast<unsigned char>(text[at + 1]);
  return second >= 0x80 && second <= 0x9f;
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
  if (!bytes.empty() && std::exchange(broken_, false) && unfinished_.empty() && bytes.front() == '\n')
    bytes.remove_prefix(1);
  const std::string joined = partial_.empty() ? "" : std::exchange(partial_, "").append(bytes);
  if (!joined.empty()) bytes = joined;
  const std::size_t whole = begin_of_unfinished_escape(bytes);
  partial_ = bytes.substr(whole);
  bytes = bytes.substr(0, whole);
  std::string text;
  while (!bytes.empty()) {
    if (!rows_.are_open()) take_lines(bytes, text);
    if (rows_.are_open()) text += show(rows_.take(bytes, now));
    if (!rows_.are_too_long()) continue;
    unfinished_ = rows_.take_row();
    text += show(rows_.close());
  }
  text += show(rows_.drop_finished(now));
  if (keeps_bar_)
    forget_old_states(unfinished_);
  else
    show_progress(now, text);
  if (unfinished_.size() > (wanted_ ? kLongestSearched : kLongestUnfinished)) text += show_part();
  return text;
}

// Takes `bytes` up to where the cursor moves up, which opens the rows.
void LogText::take_lines(std::string_view& bytes, std::string& text) {
  const std::size_t taken = std::min(find_cursor_up(bytes), bytes.size());
  const std::string_view lines = bytes.substr(0, taken);
  bytes.remove_prefix(taken);
  const std::size_t whole = lines.rfind('\n') + 1;  // 0 without a line end
  if (whole > 0) {
    if (unfinished_.empty())
      text += show(lines.substr(0, whole));
    else
      text += show(std::exchange(unfinished_, "").append(lines.substr(0, whole)));
  }
  unfinished_ += lines.substr(whole);
  if (bytes.empty()) return;
  if (unfinished_.size() > kLongestUnfinished) text += show_unfinished("\n");  // no row of a terminal
  rows_.open(std::exchange(unfinished_, ""));
}

// What stands in front of a carriage return is complete; what follows it will replace it.
void LogText::show_progress(TimePoint now, std::string& text) {
  const auto rewritten = unfinished_.rfind('\r');
  const bool has_bar = rewritten != std::string::npos && rewritten != 0;
  if ((!has_bar && !rows_.are_open()) || now < shown_progress_ + kProgressPause) return;
  const std::string states = rows_.are_open()
                                 ? rows_.show_changes()
                                 : clean_line(std::string_view(unfinished_).substr(0, rewritten)) + "\n";
  if (states.size() <= 1) return;
  shown_progress_ = now;
  text += show(states);
  if (has_bar) unfinished_.erase(0, rewritten + 1);
}

std::string LogText::bar() const {
  const bool has_bar = rows_.are_open() || unfinished_.find('\r') != std::string::npos;
  if (!keeps_bar_ || !has_bar) return "";
  const std::string state = rows_.are_open() ? rows_.last_state() : clean_line(unfinished_);
  return state.empty() || !prefix_ ? state : prefix_() + state;
}

std::string LogText::show_part() {
  const std::size_t whole = whole_utf8_characters(unfinished_, unfinished_.size());
  std::string rest = unfinished_.substr(whole);
  unfinished_.resize(whole);
  broken_ = prefix_ || wanted_;
  std::string part = show_unfinished(broken_ ? "\n" : "");
  unfinished_ = std::move(rest);
  return part;
}

std::string LogText::end_line() { return show_rest("\n"); }

std::string LogText::finish() { return show_rest(prefix_ ? "\n" : ""); }

// The start of an escape sequence is nothing that anybody sees.
std::string LogText::show_rest(const char* end) {
  partial_.clear();
  return show(rows_.close()) + show_unfinished(end);
}

std::string LogText::show_unfinished(const char* end) {
  return unfinished_.empty() ? "" : show(std::exchange(unfinished_, "").append(end));
}

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
