#include "base/system/lost_text.h"

#include <algorithm>

namespace fleetrun {

std::uint64_t LostText::add(std::string_view text) {
  std::uint64_t place = added_.fetch_add(text.size());
  for (const char byte : text) kept_[place++ % kBytes] = byte;
  return place;
}

void LostText::forget_before(std::uint64_t place) { forgotten_ = place; }

std::string LostText::read() const {
  const std::uint64_t end = added_.load(), kept = end - std::min<std::uint64_t>(end, kBytes);
  const std::uint64_t forgotten = forgotten_.load();
  std::string text;
  for (std::uint64_t place = std::max(kept, forgotten); place < end; ++place) {
    const char byte = kept_[place % kBytes].load();
    if (byte != '\0') text += byte;  // else the program was killed before it wrote this byte
  }
  if (kept > forgotten) text.erase(0, text.find('\n') == std::string::npos ? 0 : text.find('\n') + 1);
  return text;
}

}  // namespace fleetrun
