// The table of exit codes as data: base/error/exit_codes.def with its columns.
#pragma once
#include <span>
#include <string_view>

namespace fleetrun {

struct ExitCode {
  int code = 0;
  bool repeats = false;      // the failure would repeat: --max_restart does not start another attempt
  std::string_view meaning;  // in Markdown
  std::string_view again;    // whether it helps to start again, in words
};

std::span<const ExitCode> exit_codes();  // ascending

constexpr int kSignalExitCode =
    128;  // and the number of the signal: the exit code for an end by a signal, as in shells

}  // namespace fleetrun
