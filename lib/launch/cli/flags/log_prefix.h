// --log_prefix '{host} {rank}: ': what stands in front of each line of a log that is shown.
#pragma once
#include <string>
#include <vector>

namespace fleetrun::launch {

struct LogPrefix {
  std::string text;  // with {rank}, {local_rank}, {role}, {host}, {time} and {attempt}
};

struct LinePlace {
  int rank = 0, local_rank = 0;
  std::string host;
  int attempt = 0;
  std::string role = "default";
};

constexpr const char* kUsualPrefix = "[{rank}] ";  // when lines of several ranks are shown

// Throws Error(usage) for other names in braces; `source` is "--log_prefix".
LogPrefix parse_log_prefix(const std::string& source, const std::string& text);

std::vector<std::string> names_in(const LogPrefix& prefix);  // "rank" of "[{rank}] "

// {time} is the present time of day.
std::string expand(const LogPrefix& prefix, const LinePlace& place);

}  // namespace fleetrun::launch
