// Where Python ranks are in their programs, read from the stacks that py-spy or faulthandler wrote, and which rank differs. A rank that
// waits in a library for the others differs from one that does something else.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launch {

struct PythonFrame {
  std::string function, file;  // "load", "/home/me/train.py"
  int line = 0;

  std::string describe() const;  // "load (train.py:7)"
  bool operator==(const PythonFrame&) const = default;
};

// Of the main thread, innermost first; empty when the text has no Python stack.
std::vector<PythonFrame> parse_python_stack(std::string_view text);

struct PythonStack {
  int rank = 0;
  std::vector<PythonFrame> frames;
};

// "rank 1 is in load (train.py:7), the others wait in barrier (...), called in main (train.py:12)"; "" when all ranks are at one place, and
// when there are fewer than two.
std::string compare_python_stacks(const std::vector<PythonStack>& stacks);

}  // namespace fleetrun::launch
