// What a log says about why its process ended: the end of the log and the exit status in, one sentence out. Touches nothing; its size
// and its time are bounded by the length of the text.
//
// An error that the process survived is not a cause: a traceback after which it went on working, or one before a signal that
// no exception sends (SIGKILL).
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "launch/process/exit_status.h"

namespace fleetrun::launch {

struct LogCause {
  std::string what;         // "ValueError: bad batch"; "" when the log names no cause
  std::string place;        // "train.py:12, in main"; "" when it names none
  std::string from;         // of a chained exception: "raised from KeyError: 'lr' (train.py:3, in read)"
  std::string root;         // of a chain: its first exception, "KeyError: 'lr' (train.py:3, in read)"
  std::size_t chained = 0;  // exceptions of the chain before the last one
  // Of a chain: the first exception that was being handled when another one was raised, as by a cleanup.
  std::string handled;
  // Another error that belongs to it: "its Process-2 failed before: KeyError: 'x' (train.py:3, in read)", of a process that the rank has
  // started by Python's means; or "right before it, the log has ValueError: x".
  std::string beside;
  std::string hint;                // what the user can do about it; mostly ""
  bool is_crash_of_child = false;  // of a process that Python's multiprocessing has started
};

// `script`: the Python program that the rank runs (script_of()); "": another one, or unknown. `late`: bytes at the end of the log that were
// not there yet when the death of the rank was noticed.
LogCause find_log_cause(std::string_view log_end, const ExitStatus& status, std::string_view script = {},
                        std::size_t late = 0);

// When find_log_cause() finds none: the last error that would explain the end if the process had not worked on after it, as it seems. But what
// follows, which is little, may also be output that had waited in a buffer (of grep, or of a Fortran program) until the process ended.
LogCause find_survived_error(std::string_view log_end, const ExitStatus& status,
                             std::string_view script = {});

std::string describe(const LogCause& cause);  // "ValueError: bad batch (train.py:12, in main)"

}  // namespace fleetrun::launch
