// Colours on a terminal: when they are wanted, and which text has them.
#pragma once
#include <string>
#include <string_view>

#include "base/error/error.h"
#include "base/system/environment.h"

namespace fleetrun {

enum class Colour { red = 31, green, yellow, blue, magenta, cyan };  // the codes of ECMA-48

// NO_COLOR (no-color.org) wins over CLICOLOR_FORCE, and that over CLICOLOR=0 (bixense.com/clicolors). Without them a terminal has colours
// unless TERM is missing or "dumb".
bool wants_colours(const Environment& environment, bool is_terminal);

std::string in_colour(std::string_view text, Colour colour);  // `text` has no line end

// A problem as people read it: the first line in red, and hints in cyan. `lines` have their ends.
std::string colour_problem(std::string_view lines);

// Writes the error of fleetrun to stderr, in colours where those are wanted.
void print_problem(const Error& error);

}  // namespace fleetrun
