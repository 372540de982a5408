// The true first error of scripts whose ranks part from each other before they end: the rank that fails closes its connections and tidies up,
// while another rank notices the closed connection and ends first.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "launch/report/report.h"
#include "launch/run/last_words.h"

namespace fleetrun::launch {

// In the logs of the ranks that had not failed when the first one did: a traceback that nobody caught and that is not about another
// process. `script`: see script_of(). `log_of_failed`: the end of the log of the rank that failed; what stands there, too, is no cause.
std::optional<EarlierError> find_earlier_error(const LastWords& words, std::string_view script,
                                               std::string_view log_of_failed);

}  // namespace fleetrun::launch
