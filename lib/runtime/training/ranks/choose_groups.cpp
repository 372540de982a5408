#include "runtime/training/ranks/choose_groups.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/log.h"
#include "comm/collective/measure.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kMeasuredBytes = 1 << 20;  // large enough that the network's speed counts
constexpr int kMeasuredRounds = 9;
constexpr double kClearly = 0.9;  // of the other's time

comm::MeasureOptions measure_options(ProgressPage& page) {
  return {.bytes = kMeasuredBytes, .rounds = kMeasuredRounds, .before_each = [&] { page.beat(); }};
}

double time_groups(comm::HierarchicalAlgorithm algorithm, const std::string& name, int group_size,
                   comm::World& world, ProgressPage& page) {
  const auto communicator = comm::make_hierarchical(
      {.party = world.party(), .group_size = group_size, .algorithm = algorithm, .name = name}, world.more);
  return comm::measure_all_reduce(*communicator, measure_options(page)).median;
}

AllReduceTimes measure(int group_size, comm::World& world, ProgressPage& page) {
  return {
      .flat = comm::measure_all_reduce(*world.communicator, measure_options(page)).median,
      .leader = time_groups(comm::HierarchicalAlgorithm::leader, "measured leader", group_size, world, page),
      .scatter =
          time_groups(comm::HierarchicalAlgorithm::scatter, "measured scatter", group_size, world, page)};
}

std::string describe(const AllReduceTimes& times, int group_size,
                     std::optional<job::HierarchicalAlgorithm> taken) {
  const char* const what = !taken                                         ? "taking all ranks at once"
                           : *taken == job::HierarchicalAlgorithm::leader ? "taking the leaders"
                                                                          : "taking the slices";
  return fmt::format(
      "an all-reduce of 1 MiB takes {:.2f} ms among all ranks at once, {:.2f} ms in groups of {} ranks by their "
      "leaders, {:.2f} ms by slices: {}",
      times.flat / 1e3, times.leader / 1e3, group_size, times.scatter / 1e3, what);
}

}  // namespace

std::optional<int> ranks_per_host(const std::vector<std::string>& hosts) {
  const auto first_elsewhere =
      std::find_if(hosts.begin(), hosts.end(), [&](auto& host) { return host != hosts[0]; });
  const auto group = static_cast<std::size_t>(first_elsewhere - hosts.begin());
  if (group < 2 || first_elsewhere == hosts.end() || hosts.size() % group != 0) return std::nullopt;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const bool begins_host = rank % group == 0 && rank > 0;
    const bool as_before = rank > 0 && hosts[rank] == hosts[rank - 1];
    if (rank > 0 && begins_host == as_before) return std::nullopt;
  }
  return static_cast<int>(group);
}

std::optional<job::HierarchicalAlgorithm> fastest(const AllReduceTimes& times) {
  if (std::min(times.leader, times.scatter) >= kClearly * times.flat) return std::nullopt;
  const bool slices = times.leader >= kClearly * times.flat || times.scatter < kClearly * times.leader;
  return slices ? job::HierarchicalAlgorithm::scatter : job::HierarchicalAlgorithm::leader;
}

job::StrategySpec choose_groups(const job::StrategySpec& strategy, comm::World& world, ProgressPage& page) {
  job::StrategySpec chosen = strategy;
  if (strategy.use_hierarchical_allreduce) return chosen;
  chosen.use_hierarchical_allreduce = false;
  const std::optional<int> group_size = ranks_per_host(world.hosts);
  if (!strategy.cudnn_exhaustive_search || world.env.device != "cpu" || !group_size) return chosen;

  const AllReduceTimes times = measure(*group_size, world, page);
  const std::optional<job::HierarchicalAlgorithm> taken = fastest(times);
  if (world.env.rank == 0) log_line("rank 0", describe(times, *group_size, taken));
  if (!taken) return chosen;
  chosen.use_hierarchical_allreduce = true;
  chosen.hierarchical_allreduce_algorithm = *taken;
  chosen.hierarchical_allreduce_inter_nranks = *group_size;
  return chosen;
}

}  // namespace fleetrun::runtime
