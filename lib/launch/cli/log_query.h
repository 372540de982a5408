// What `fleetrun logs` was asked for.
#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "launch/cli/flags/log_prefix.h"
#include "launch/cli/flags/pattern.h"
#include "launch/cli/flags/rank_set.h"
#include "launch/cli/flags/read_flags.h"

namespace fleetrun::launch {

struct LogQuery {
  std::string folder = "log";
  bool follow = false;
  std::optional<RankSet> ranks;  // none: all
  std::optional<std::chrono::system_clock::time_point> since;
  std::optional<Pattern> pattern;
  std::optional<LogPrefix> prefix;
};

// Throws Error(usage).
LogQuery parse_log_query(const FoundFlags& found, const std::string& folder,
                         std::chrono::system_clock::time_point now);

// "30s", "10m", "2h", "1d" before `now`, or "14:30[:00]" of today. Throws Error(usage).
std::chrono::system_clock::time_point parse_since(const std::string& source, const std::string& text,
                                                  std::chrono::system_clock::time_point now);

}  // namespace fleetrun::launch
