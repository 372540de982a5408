#include "launch/page/markup.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/text/printable.h"

namespace fleetrun::launch {

std::string escape_markup(std::string_view text) {
  std::string safe;
  for (const char letter : printable_lines(text)) {
    switch (letter) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += letter;
    }
  }
  return safe;
}

std::string short_number(double value) {
  constexpr double kPlain = 1e4;  // the first number with a unit
  if (std::abs(value) < kPlain) return fmt::format("{:.4g}", value);
  for (const auto& [unit, letter] : {std::pair(1e9, 'G'), {1e6, 'M'}, {1e3, 'k'}})
    if (std::abs(value) >= unit) return fmt::format("{:.3g}{}", value / unit, letter);
  return fmt::format("{:.4g}", value);
}

}  // namespace fleetrun::launch
