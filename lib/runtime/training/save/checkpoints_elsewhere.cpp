#include "runtime/training/save/checkpoints_elsewhere.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "base/text/printable.h"
#include "runtime/checkpoint/checkpoint_folder.h"

namespace fleetrun::runtime {

std::string warn_of_checkpoints_elsewhere(const std::string& folder, const RankEnv& env,
                                          comm::Communicator& communicator) {
  constexpr std::int64_t kNoStep = -1;
  std::vector<std::int64_t> steps(static_cast<std::size_t>(env.nodes), kNoStep);  // by node
  if (env.local_rank == 0)
    steps[static_cast<std::size_t>(env.node_rank)] = newest_step_in(folder).value_or(kNoStep);
  communicator.all_reduce({steps.data(), steps.size(), DType::i64}, comm::ReduceOp::max);
  const auto newest = std::max_element(steps.begin(), steps.end());
  if (env.rank != 0 || *newest <= steps.front()) return "";
  const std::string own =
      steps.front() == kNoStep ? "has none" : fmt::format("has one of step {}", steps.front());
  return fmt::format(
      "warning: node {0} has a checkpoint of step {1} in {2}, but node 0, which saves and resumes, {3}. To resume from "
      "step {1}, start the run with the host of node {0} as node 0, or copy its checkpoints. A disk that all nodes share "
      "avoids this",
      newest - steps.begin(), *newest, printable(folder), own);
}

}  // namespace fleetrun::runtime
