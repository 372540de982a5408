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

// Gives them Weight::echo. `at_death`: how many of the lines were there when the death of the rank was noticed.
void weaken_echoes(std::vector<Finding>& findings, const std::vector<std::string>& lines,
                   std::string_view script, std::size_t at_death);

}  // namespace fleetrun::launch
