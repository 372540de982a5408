// The true first error of scripts whose ranks part from each other before they end: the rank that fails closes its connections and tidies up,
// while another rank notices the closed connection and ends first.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "launch/report/report.h"
#include "launch/run/last_words.h"

namespace fleetrun::launch {

// In the logs of the ranks that had not ended when the first one failed: a traceback that nobody caught and that is not about another
// process. `script`: see script_of().
std::optional<EarlierError> find_earlier_error(const LastWords& words, std::string_view script);

}  // namespace fleetrun::launch
