// What may be done with the terminal that our stderr is.
#pragma once
#include <cstddef>

#include "base/system/environment.h"

namespace fleetrun::launch {

// It can erase a line, as far as $TERM tells: Emacs' shell, say, is "dumb", and without TERM nothing is known.
bool can_erase_lines(const Environment& environment);

// The front process is in the terminal's foreground. Not after Ctrl-Z, after `&`, or on a terminal that is not the
// one of our session: there a shell's prompt, or somebody else's text, may stand where we would write.
bool is_in_foreground(int terminal_fd);

std::size_t terminal_width(int terminal_fd);  // in columns

}  // namespace fleetrun::launch
