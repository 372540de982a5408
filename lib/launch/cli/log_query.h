// What `fleetrun logs` was asked for.
#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/cli/flag.h"
#include "launch/cli/log_prefix.h"
#include "launch/cli/pattern.h"
#include "launch/cli/rank_set.h"

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

struct RankLog {
  int rank = 0;
  bool errors = false;  // of stderr alone

  std::string name() const;  // "0", "0.err"
  auto operator<=>(const RankLog&) const = default;
};

// The logs in the folder, in the order of their ranks. Throws Error(missing) when there is none.
std::vector<RankLog> find_logs(const std::string& folder);

std::uint64_t inode_of(const std::string& path);  // 0: there is no such file

// The logs that a rank wrote after the one with this inode and before the present one, as restarts keep them.
std::vector<std::string> attempts_since(const std::string& folder, const std::string& name,
                                        std::uint64_t inode);

}  // namespace fleetrun::launch
