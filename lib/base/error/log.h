// Lines for people on stderr: one event a line, written at once, starting with who says it.
#pragma once
#include <string>
#include <string_view>

namespace fleetrun {

// "rank 3: joined 8 ranks in 41 ms": one write(2), so that lines of several threads stay whole.
void log_line(std::string_view who, std::string_view message);

}  // namespace fleetrun
