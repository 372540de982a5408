#include "runtime/training/setup/compute_options.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "job/spec/settle_strategy.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kMebibyte = 1 << 20;

std::uint64_t seed_of_replica(const job::JobSpec& job, int replica) {
  return static_cast<std::uint64_t>(job.train.seed) + (static_cast<std::uint64_t>(replica) << 32U);
}

// The ranks can record their steps together if these give collectives to one stream and do not wait for each.
std::string why_not_recorded_together(const job::StrategySpec& strategy) {
  if (strategy.pipeline) return "the stages of a pipeline have different programs";
  if (strategy.use_hierarchical_allreduce.value_or(false) || job::shards_in_groups(strategy) ||
      strategy.nccl_comm_num > 1)
    return "the ranks use several communicators";
  if (strategy.sync_nccl_allreduce)
    return "the host waits for each collective (strategy.sync_nccl_allreduce=false records them)";
  return "";
}

}  // namespace

ExecutorOptions executor_options(const job::JobSpec& job, int replica, int threads) {
  const int in_flight = job.strategy.execution_strategy.num_threads;
  return {.threads = in_flight,
          .team = std::max(1, threads / in_flight),
          .wait_for_collectives = job.strategy.sync_nccl_allreduce && !job.strategy.pipeline,
          .why_not_recorded_together = why_not_recorded_together(job.strategy),
          .seed = seed_of_replica(job, replica),
          .share_in_place = job.strategy.build_strategy.enable_inplace,
          .drop_every = job.strategy.execution_strategy.num_iteration_per_drop_scope,
          .keep_addresses = job.strategy.build_strategy.cache_runtime_context,
          .measure_ops = job.train.profile > 0};
}

ImageForm image_form_for(Device& device) {
  return device.streams() == nullptr ? ImageForm::numbers : ImageForm::pixels;
}

SearchOptions search_options(const job::StrategySpec& strategy, int team) {
  return {.search = strategy.cudnn_exhaustive_search,
          .scratch_limit = static_cast<std::size_t>(strategy.conv_workspace_size_limit) * kMebibyte,
          .team = team};
}

int team_within_limit(int wanted, const Device& device, std::vector<std::string>& messages) {
  const int team = device.largest_team(wanted);
  if (team < wanted)
    messages.push_back(
        fmt::format("warning: each op computes with {} instead of {}: OMP_THREAD_LIMIT allows no more",
                    plural(team, "thread"), wanted));
  return team;
}

}  // namespace fleetrun::runtime
