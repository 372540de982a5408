// The end of a log, as it can be shown to people.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/logs/growing_file.h"

namespace fleetrun::launch {

// The end of a file, or of its first `size` bytes, at most so many bytes; "" when it cannot be read.
std::string read_log_end(const LogFile& file, std::size_t most, std::optional<off_t> size = std::nullopt);

// errno of a file that cannot be read; 0: it can.
int problem_of_reading(const LogFile& file);

// The last lines of a text as people can read them: of a progress bar its last state, no escape sequences, and no line
// longer than a screen takes.
std::vector<std::string> last_lines(std::string_view text, std::size_t count);

// The last lines of the log of a rank that failed. If the log ends with the backtrace of a crash that has more lines than
// `count`, they are the line above it, which may say why the rank aborted, and its first lines: the headline and the innermost frames.
std::vector<std::string> last_lines_of_failure(std::string_view text, std::size_t count);

std::vector<std::string> read_last_lines(const LogFile& file, std::size_t count);

// Not longer than `most` bytes; what is cut off is "...".
std::string shorten(std::string text, std::size_t most);

}  // namespace fleetrun::launch
