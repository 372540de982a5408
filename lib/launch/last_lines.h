// The end of a log, as it can be shown to people.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace fleetrun::launch {

// The last `count` lines of a file, as printable() shows them; none when it cannot be read.
std::vector<std::string> read_last_lines(const std::string& path, std::size_t count);

}  // namespace fleetrun::launch
