// --log_rule 'REGEX within 60s': some rank's log has to show a line that matches at least so often.
#pragma once
#include <string>

#include "launch/cli/flags/pattern.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

struct LogRule {
  std::string text;  // as the user wrote it
  Pattern pattern;
  Clock::duration within{};
};

// Throws Error(usage); `source` is "--log_rule".
LogRule parse_log_rule(const std::string& source, const std::string& text);

}  // namespace fleetrun::launch
