// Our stdout, which carries what the user asked for and nothing else.
#pragma once
#include <string_view>

namespace fleetrun {

// Throws Error(io) when the text does not arrive: a full disk, a closed descriptor, a reader that is gone.
void print_answer(std::string_view text);

}  // namespace fleetrun
