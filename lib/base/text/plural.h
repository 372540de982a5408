// Numbers with their noun: "1 step", "5 steps", "2 processes".
#pragma once
#include <concepts>
#include <string>
#include <string_view>

namespace fleetrun {

// `ending` is what the noun gets for all numbers but 1.
template <std::integral Number>
std::string plural(Number count, std::string_view noun, std::string_view ending = "s") {
  std::string text = std::to_string(count) + " ";
  text += noun;
  if (count != 1) text += ending;
  return text;
}

}  // namespace fleetrun
