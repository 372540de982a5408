// Errors that follow from the end of the script, or only come after it: of a process of Python's multiprocessing that loses its parent, of a
// program that the script has started, and of exit handlers and threads. They are written while Python leaves the script, or later.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "launch/evidence/finding.h"

namespace fleetrun::launch {

// What the rank runs: "train.py", "pk/train.py" of `-m pk.train`; "": not Python, or not known.
std::string script_of(const std::vector<std::string>& command);

// How a rank ended.
struct EndOfRank {
  std::string_view script;         // script_of()
  std::size_t lines_at_death = 0;  // of its log, when its death was noticed
  int exit_code = 0;               // of the rank
};

// Gives them Weight::echo.
void weaken_echoes(std::vector<Finding>& findings, const std::vector<std::string>& lines,
                   const EndOfRank& end);

}  // namespace fleetrun::launch
