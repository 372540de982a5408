#include "launch/cli/flags/log_rule.h"

#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/cli/flags/flag_values.h"

namespace fleetrun::launch {

LogRule parse_log_rule(const std::string& source, const std::string& text) {
  constexpr std::string_view kWithin = " within ";
  const auto place = text.rfind(kWithin);
  if (place == std::string::npos || place == 0)
    throw Error(ErrorKind::usage,
                fmt::format("{} is \"{}\", must be \"REGEX within SECONDSs\"", source, text),
                "for example --log_rule='loss: within 60s'");
  std::string seconds = text.substr(place + kWithin.size());
  if (seconds.ends_with('s')) seconds.pop_back();
  const Clock::duration within = parse_seconds(source, seconds);
  if (within == Clock::duration::zero())
    throw Error(ErrorKind::usage, fmt::format("{} is \"{}\", must give more than 0 seconds", source, text));
  return {.text = text, .pattern = Pattern(source, text.substr(0, place)), .within = within};
}

}  // namespace fleetrun::launch
