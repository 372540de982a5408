#include "base/text/printable.h"

#include <algorithm>

#include "base/text/utf8.h"

namespace fleetrun {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// U+0080 to U+009F, of which some terminals take U+009B for the start of an escape sequence.
bool is_second_control(std::string_view character) {
  return character.size() == 2 && character[0] == '\xC2' && static_cast<unsigned char>(character[1]) < 0xA0;
}

// U+202A to U+202E and U+2066 to U+2069 (Unicode Standard Annex 9), U+2028 and U+2029, which end a line.
bool is_direction_or_line(std::string_view character) {
  if (character.size() != 3 || !character.starts_with("\xE2")) return false;
  const auto second = static_cast<unsigned char>(character[1]),
             third = static_cast<unsigned char>(character[2]);
  return (second == 0x80 && third >= 0xA8 && third <= 0xAE) ||
         (second == 0x81 && third >= 0xA6 && third <= 0xA9);
}

// The character at the front, which is taken off; U+FFFD in place of a byte that begins none.
std::string_view take_character(std::string_view& text) {
  const std::size_t length = utf8_character_length(text, 0);
  const std::string_view character = length == 0 ? kReplacement : text.substr(0, length);
  text.remove_prefix(std::max<std::size_t>(length, 1));
  return character;
}

std::string_view take_printable(std::string_view& text) {
  const std::string_view character = take_character(text);
  return is_unprintable(character) ? "?" : character;
}

}  // namespace

bool is_unprintable(std::string_view character) {
  const auto code = static_cast<unsigned char>(character.front());
  return (code < 0x20 && code != '\t') || code == 0x7f || is_second_control(character) ||
         is_direction_or_line(character);
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) valid += take_character(text);
  return valid;
}

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) shown += take_printable(text);
  return shown;
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    shown += printable(text.substr(0, end));
    if (end < text.size()) shown += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shown;
}

std::string printable_start(std::string_view text, std::size_t limit) {
  std::string shown;
  while (!text.empty()) {
    const std::string_view character = take_printable(text);
    if (shown.size() + character.size() > limit) return shown + "...";
    shown += character;
  }
  return shown;
}

}  // namespace fleetrun
