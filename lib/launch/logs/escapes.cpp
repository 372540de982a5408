#include "launch/logs/escapes.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace fleetrun::launch {
namespace {

constexpr char kBell = '\a';
constexpr std::size_t kLongestEscape = 64;  // bytes; nobody waits for the end of a longer one

bool is_between(char letter, char first, char last) { return letter >= first && letter <= last; }

bool is_parameter(char letter) { return is_between(letter, ' ', '?'); }

// The parameter of a control sequence that ends with one of these letters, at least 1: 2 of "\x1b[2A", 1 of "\x1b[A". 0: it is another one.
std::size_t count_of(std::string_view escape, std::string_view letters) {
  if (!escape.starts_with("\x1b[") || letters.find(escape.back()) == std::string_view::npos) return 0;
  const std::string_view number = escape.substr(2, escape.size() - 3);
  if (number.empty()) return 1;
  std::size_t count = 0;
  const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), count);
  if (end != number.data() + number.size()) return 0;
  if (problem == std::errc::result_out_of_range) return std::numeric_limits<std::size_t>::max();
  return std::max<std::size_t>(count, 1);
}

}  // namespace

std::size_t end_of_escape(std::string_view text, std::size_t start) {
  std::size_t at = start + 1;
  if (at == text.size()) return at;
  const char kind = text[at++];
  if (kind == '[') {
    while (at < text.size() && is_parameter(text[at])) ++at;
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

std::size_t begin_of_unfinished_escape(std::string_view text) {
  const std::string_view end = text.substr(text.size() - std::min(text.size(), kLongestEscape));
  const std::size_t escape = end.rfind(kEscape);
  if (escape == std::string_view::npos) return text.size();
  const std::string_view rest = end.substr(escape + 1);
  const bool may_go_on =
      rest.empty() || (rest.front() == '[' && std::ranges::all_of(rest.substr(1), is_parameter));
  return may_go_on ? text.size() - end.size() + escape : text.size();
}

std::size_t rows_up(std::string_view escape) { return count_of(escape, "AF"); }

std::size_t rows_down(std::string_view escape) { return count_of(escape, "BE"); }

std::size_t find_cursor_up(std::string_view text) {
  for (std::size_t at = text.find(kEscape); at != std::string_view::npos; at = text.find(kEscape, at + 1))
    if (rows_up(text.substr(at, end_of_escape(text, at) - at)) > 0) return at;
  return std::string_view::npos;
}

}  // namespace fleetrun::launch
