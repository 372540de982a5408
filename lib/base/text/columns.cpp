#include "base/text/columns.h"

#include <algorithm>
#include <array>

namespace fleetrun {
namespace {

struct Range {
  char32_t first, last;
};

constexpr std::array kWide = {Range{0x1100, 0x115f},   Range{0x231a, 0x231b},   Range{0x23e9, 0x23ec},
                              Range{0x2e80, 0x303e},   Range{0x3041, 0xa4cf},   Range{0xa960, 0xa97c},
                              Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},   Range{0xfe30, 0xfe6f},
                              Range{0xff01, 0xff60},   Range{0xffe0, 0xffe6},   Range{0x1f300, 0x1f64f},
                              Range{0x1f680, 0x1f6ff}, Range{0x1f900, 0x1f9ff}, Range{0x20000, 0x3fffd}};
constexpr std::array kCombining = {Range{0x300, 0x36f}, Range{0x200b, 0x200f}, Range{0x20d0, 0x20ff},
                                   Range{0xfe00, 0xfe0f}};

char32_t code_of(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character.front());
  if (lead < 0x80) return lead;
  char32_t code = character.size() == 2 ? lead & 0x1f : character.size() == 3 ? lead & 0x0f : lead & 0x07;
  for (const char next : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(next) & 0x3f);
  return code;
}

}  // namespace

std::size_t columns_of_character(std::string_view character) {
  const char32_t code = code_of(character);
  const auto has = [code](const Range& range) { return code >= range.first && code <= range.last; };
  if (std::ranges::any_of(kCombining, has)) return 0;
  return std::ranges::any_of(kWide, has) ? 2 : 1;
}

}  // namespace fleetrun
