// What a log says of the processes that a Python program has started: of multiprocessing, of a pool, of a data loader.
#pragma once
#include <string_view>

#include "launch/evidence/finding.h"
#include "launch/evidence/log_lines.h"

namespace fleetrun::launch {

// Tells by a frame of a traceback, "/usr/lib/python3.11/multiprocessing/process.py:314, in _bootstrap", what kind of process wrote it.
Writer writer_in_frame(std::string_view place);

// Sets the writer of this message of a crash: by the stack that faulthandler writes below it, `  File "/home/me/train.py", line 12 in main`, or by
// the message of PyTorch's DataLoader.
void note_crashed_process(const LogLines& log, Finding& message);

// Whether this is a message such as "Fatal Python error: Segmentation fault" or "terminate called ...". An exception of Python is not a crash.
bool is_crash(const Finding& finding);

// Whether the exception only says that a child failed. The child has mostly said why.
bool is_about_a_child(std::string_view exception);

// Whether the exception names the signal that ended a worker of PyTorch's DataLoader.
bool names_signal_of_loader(const LogCause& cause);

// Whether this is an error of a pool, or of a data loader of PyTorch. False if the exception was raised from one that says more.
bool says_no_more_than_child_ended(const LogCause& cause);

}  // namespace fleetrun::launch
