// The logs of ranks in a log folder, found by whoever reads them later.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace fleetrun::launch {

struct RankLog {
  int rank = 0;
  bool errors = false;  // of stderr alone

  std::string name() const;  // "0", "0.err"
  auto operator<=>(const RankLog&) const = default;
};

// The logs in the folder, in the order of their ranks. Throws Error(missing) when there is none.
std::vector<RankLog> find_logs(const std::string& folder);

std::vector<int> kept_attempts(const std::string& folder);  // the numbers of its folders attempt-K, in order

// The number of the attempt that wrote the logs in this folder: K for the folder attempt-K/, the newest attempt for the log folder itself.
// `first`: the first attempt of this node.
int attempt_in(const std::string& folder, int first);

std::uint64_t inode_of(const std::string& path);  // 0: there is no such file

// The logs that a rank wrote after the one with this inode and before the present one, as restarts keep them.
std::vector<std::string> attempts_since(const std::string& folder, const std::string& name,
                                        std::uint64_t inode);

}  // namespace fleetrun::launch
