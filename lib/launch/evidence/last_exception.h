// The last exception of a log that may have ended the process: not one of a thread, a destructor or a logger that fails itself, nor an echo of
// the exception that ended the script (echoes.h).
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "launch/evidence/finding.h"
#include "launch/evidence/log_lines.h"

namespace fleetrun::launch {

struct LastException {
  LogLines log;
  std::vector<Finding> tracebacks;
  const Finding* traceback = nullptr;  // of these; null: there is none

  // `script`: as for find_log_cause().
  LastException(std::string_view log_end, std::string_view script);
  LastException(const LastException&) = delete;
  LastException& operator=(const LastException&) = delete;

  std::size_t end_of_message() const;  // a line
  // Whether one of the last `most` lines before it, without those that go without saying, has something. Lines of threads and destructors do
  // not count.
  bool line_before_has(bool (*has)(std::string_view line), std::size_t most) const;
};

// Whether somebody may have caught the last exception: Python begins the others at the top level of the script, and a logger prints a record in front of one
// that was caught. False without a traceback.
bool may_be_caught(std::string_view log_end, std::string_view script);

}  // namespace fleetrun::launch
