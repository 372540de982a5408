#include "prototxt/places.h"

#include <algorithm>

namespace fleetrun::prototxt {
namespace {

constexpr int kTab = 8;

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

}  // namespace

Places::Places(std::string_view text) : text_(text), lines_{0} {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') lines_.push_back(i + 1);
}

std::size_t Places::offset_of(int line, int column) const {
  if (line < 0 || static_cast<std::size_t>(line) >= lines_.size()) return text_.size();
  std::size_t offset = lines_[static_cast<std::size_t>(line)];
  for (int reached = 0; reached < column && offset < text_.size() && text_[offset] != '\n'; ++offset)
    reached += text_[offset] == '\t' ? kTab - reached % kTab : 1;
  return offset;
}

TextPosition Places::at(std::size_t offset) const {
  const auto next = std::upper_bound(lines_.begin(), lines_.end(), offset);
  const std::size_t start = *std::prev(next);
  const auto line = text_.substr(start, offset - start);
  return {static_cast<int>(next - lines_.begin()),
          static_cast<int>(std::count_if(line.begin(), line.end(), begins_character)) + 1};
}

std::size_t Places::before(std::size_t offset, std::string_view word) const {
  const std::size_t found = text_.substr(0, offset).rfind(word);
  return found == std::string_view::npos ? offset : found;
}

}  // namespace fleetrun::prototxt
