// The first error of a script may be in the log of a rank that ends later: the rank closes its connections and tidies up. Meanwhile, another
// rank notices the closed connection and ends first.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "launch/report/report.h"
#include "launch/run/last_words.h"

namespace fleetrun::launch {

struct EarlierErrorSearch {
  std::string script = {};  // see script_of()
  // The ends of the logs of the rank that failed. An error that is there, too, is not the cause.
  std::string log_of_failed = {};
  // For something that did not come, until fleetrun ended them.
  bool ranks_waited = false;
};

// In the logs of the ranks that had not failed when the first one did: a traceback that is not about another process, or the crash of a process
// of multiprocessing, after which the rank has not worked. If the rank may have caught the exception and only printed it, the traceback
// counts only while it is fresh. A crash also counts if the ranks waited, and no log has grown since.
std::optional<EarlierError> find_earlier_error(const LastWords& words, const EarlierErrorSearch& search);

}  // namespace fleetrun::launch
