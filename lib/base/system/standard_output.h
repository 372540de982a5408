// Our stdout, which carries what the user asked for and nothing else.
#pragma once
#include <string_view>

namespace fleetrun {

// Throws Error(io) when the text cannot be written: the disk is full, or stdout is closed. Without a reader, ends this process by SIGPIPE,
// so whoever has something to clean up does that before.
void print_answer(std::string_view text);

}  // namespace fleetrun
