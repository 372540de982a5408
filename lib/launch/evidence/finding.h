// What a recogniser found in the lines of a log, and which ends of a process it explains.
#pragma once
#include <cstddef>
#include <string>

#include "launch/evidence/log_cause.h"

namespace fleetrun::launch {

// A set of these.
enum Ending : unsigned {
  kExit = 1,       // with a code other than 0
  kAbort = 2,      // SIGABRT
  kCrash = 4,      // SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS
  kInterrupt = 8,  // SIGINT
};

enum class Weight {
  certain,     // explains the end wherever it stands
  last_words,  // only when the process did nothing after it
  clue,        // the same, and only when there is nothing better
  echo,        // a child failed, which has mostly said why; only when there is not even a clue
};

// Who wrote a traceback or the stack of a crash, as its frames show.
enum class Writer {
  program,  // or not known
  process,  // of multiprocessing, started by the program
  worker,   // of a pool or a data loader, or a process that could not begin
};

struct Finding {
  std::size_t first = 0, end = 0;  // its lines, first <= line < end
  LogCause cause;
  unsigned endings = 0;  // 0: explains no end, but does not count as a sign of life
  Weight weight = Weight::last_words;
  int code = 0;  // the only exit code that it explains; 0: any
  Writer writer = Writer::program;
  // Of a traceback:
  bool from_top = false;   // from the top level of the program, as when nobody catches the exception
  bool has_header = true;  // else its beginning is out of sight, or between lines of others
  bool in_thread = false;  // of a thread or a task of asyncio: the program may go on without it
  std::string file;        // of the first frame
  std::string prefix;      // in front of each line
  std::string child;  // the name of the process of multiprocessing that wrote it: "SpawnProcess-2"; "": none

  bool is_traceback() const { return !file.empty(); }
};

}  // namespace fleetrun::launch
