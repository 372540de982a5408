// Our stdout, which carries what the user asked for and nothing else.
#pragma once
#include <string_view>

namespace fleetrun {

// Throws Error(io) when the text cannot be written: the disk is full, stdout is closed, or the reader is gone.
void print_answer(std::string_view text);

}  // namespace fleetrun
