// Errors of other processes that fail because the rank ends: a process of Python's multiprocessing that loses its parent, or a program that
// the script has started. They may write while Python still leaves the script.
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
  int exit_code = 1;               // of the rank
};

// Gives them Weight::echo. Also what exit handlers, threads and children report of exceptions of their own, after an exception has ended the
// script.
void weaken_echoes(std::vector<Finding>& findings, const std::vector<std::string>& lines,
                   const EndOfRank& end);

}  // namespace fleetrun::launch
