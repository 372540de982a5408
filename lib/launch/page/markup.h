// Text of other people inside HTML and SVG.
#pragma once
#include <string>
#include <string_view>

namespace fleetrun::launch {

// Printable text, in which no letter starts a tag, an entity or the end of an attribute. Line ends stay.
std::string escape_markup(std::string_view text);

// "0.01235", "1234", "12.3k", "4.5M": about four digits, for people.
std::string short_number(double value);

}  // namespace fleetrun::launch
