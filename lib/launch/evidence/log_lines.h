// The end of a log as recognisers read it: lines without escape sequences and control characters, valid UTF-8, each of
// bounded length.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launch {

struct LogLines {
  std::vector<std::string> lines;
  std::string text;                 // the same, joined
  std::vector<std::size_t> starts;  // of the lines in the text
  std::vector<bool> advances;       // whether the line is a progress bar that was drawn several times

  std::size_t line_at(std::size_t place) const;  // the number of the line that this place of the text is in
};

LogLines read_log_lines(std::string_view log_end);

bool is_digit(char letter);

// A prefix that a logger or a launcher puts in front of each line ("[rank0]: ", a time of day) is taken away. Digits of a
// prefix may change from line to line.
std::string_view without_prefix(std::string_view line, std::string_view prefix);

}  // namespace fleetrun::launch
