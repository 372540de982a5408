#include "base/system/lost_text.h"

#include <algorithm>

namespace fleetrun {

void LostText::add(std::string_view text) {
  std::uint64_t place = added_.fetch_add(text.size());
  for (const char byte : text) kept_[place++ % kBytes] = byte;
}

std::string LostText::read() const {
  const std::uint64_t end = added_.load(), begin = end - std::min<std::uint64_t>(end, kBytes);
  std::string text;
  for (std::uint64_t place = begin; place < end; ++place) text += kept_[place % kBytes].load();
  if (begin > 0) text.erase(0, text.find('\n') == std::string::npos ? 0 : text.find('\n') + 1);
  return text;
}

}  // namespace fleetrun
