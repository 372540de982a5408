// Python's exceptions as it prints them: tracebacks of any length, chained ones, groups, syntax errors, and the frames that
// Rich draws around them. A prefix in front of each line does not matter.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "launch/evidence/finding.h"
#include "launch/evidence/log_lines.h"

namespace fleetrun::launch {

// In the order of the log. A report about an exception that cannot end the process explains nothing.
std::vector<Finding> find_tracebacks(const LogLines& log);

// "ValueError: x", "json.decoder.JSONDecodeError: x" at the beginning of a line.
bool is_bare_exception(std::string_view line);

// "SpawnProcess-2" of "Process SpawnProcess-2:", which multiprocessing writes in front of the traceback of a child; "" of other lines.
std::string_view child_in_headline(std::string_view line);

// The place in `  File "/home/me/train.py", line 12, in main`: "/home/me/train.py:12, in main"; "" in other lines.
std::string place_in_frame(std::string_view line);

}  // namespace fleetrun::launch
