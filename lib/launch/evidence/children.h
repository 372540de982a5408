// What a log says of the processes that a Python program has started: of multiprocessing, of a pool, of a data loader.
#pragma once
#include <string_view>

#include "launch/evidence/finding.h"
#include "launch/evidence/log_lines.h"

namespace fleetrun::launch {

// By the outer frame of a traceback, "/usr/lib/python3.11/multiprocessing/process.py:314, in _bootstrap".
Writer writer_in_frame(std::string_view place);

// Of a crash, by the stack that faulthandler writes below its message: `  File "/home/me/train.py", line 12 in main`.
Writer writer_of_crash(const LogLines& log, const Finding& message);

// A message such as "Fatal Python error: Segmentation fault" or "terminate called ...". No exception of Python is one.
bool is_crash(const Finding& finding);

// An exception that only says that a child failed. The child has mostly said why.
bool is_about_a_child(std::string_view exception);

// An error of a pool of concurrent.futures, or of a data loader of PyTorch. Not so if it was raised from one that says more.
bool says_no_more_than_child_ended(const LogCause& cause);

}  // namespace fleetrun::launch
