#include "base/text/utf8.h"

#include <algorithm>

namespace fleetrun {

std::size_t utf8_character_length(std::string_view text, std::size_t offset) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return offset + i < text.size() ? static_cast<unsigned char>(text[offset + i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if ((first & 0xF0U) == 0xE0) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) > 0x9F;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool too_high = first == 0xF4 && byte(1) > 0x8F;
    return follows(1) && follows(2) && follows(3) && !overlong && !too_high ? 4 : 0;
  }
  return 0;
}

std::size_t whole_utf8_characters(std::string_view text, std::size_t most) {
  const std::size_t end = std::min(text.size(), most);
  for (std::size_t back = 1; back <= std::min<std::size_t>(end, 3); ++back) {
    const auto byte = static_cast<unsigned char>(text[end - back]);
    if (byte < 0x80) break;
    if (byte < 0xC0) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : (byte >= 0xE0 ? 3 : 2);
    return length > back ? end - back : end;
  }
  return end;
}

bool is_utf8(std::string_view text) {
  unsigned char high = 0;  // most lines are ASCII, and this loop becomes vector instructions
  for (const char letter : text) high |= static_cast<unsigned char>(letter);
  if (high < 0x80) return true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_character_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

}  // namespace fleetrun
