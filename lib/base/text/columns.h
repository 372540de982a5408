// How wide text is on a terminal.
#pragma once
#include <cstddef>
#include <string_view>

namespace fleetrun {

// The columns of one character of UTF-8: 2 if it is wide (East Asian scripts and emoji), 0 if it combines with the one before, else 1. Of the
// ranges of Unicode Standard Annex #11, those in use are enough.
std::size_t columns_of_character(std::string_view character);

}  // namespace fleetrun
