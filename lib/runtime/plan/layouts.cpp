#include "runtime/plan/layouts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "runtime/passes/shared/owners.h"

namespace fleetrun::runtime {
namespace {

constexpr double kGiga = 1e9;
constexpr double kForwardAndBackward = 3;   // times the work of the forward part
constexpr double kBackwardShare = 2.0 / 3;  // of the computation: sums of gradients hide behind it
constexpr double kNeverHidden = 0.1;        // of a sum: its last group comes after the backward part
constexpr int kMostMicroBatches = 64;

double forward_seconds(const ForwardCost& op, const PlanRequest& machine) {
  return std::max(op.flops / (machine.tflops * 1e12), op.moved_bytes / (machine.memory_gb_s * kGiga));
}

// Of one rank's batch, if it did everything itself.
double compute_seconds(const StepCosts& costs, const PlanRequest& machine) {
  if (machine.step_ms > 0) return machine.step_ms / 1e3;
  double forward = 0;
  for (const ForwardCost& op : costs.forward) forward += forward_seconds(op, machine);
  return kForwardAndBackward * forward;
}

// The forward part cut into stages that take about the same time.
struct Stages {
  double slowest_share = 1;   // of the time, of the slowest stage; 1/stages if they are equal
  double largest_share = 1;   // of the parameters
  double crossing_bytes = 0;  // the most that one cut sends, per batch
};

Stages cut(const StepCosts& costs, int stages, const PlanRequest& machine) {
  Stages result = {.slowest_share = 0, .largest_share = 0};
  double all = 0;
  for (const ForwardCost& op : costs.forward) all += forward_seconds(op, machine);
  double done = 0, of_stage = 0, parameters = 0;
  int stage = 1;
  for (const ForwardCost& op : costs.forward) {
    const double seconds = forward_seconds(op, machine);
    done += seconds, of_stage += seconds, parameters += op.parameter_bytes;
    result.slowest_share = std::max(result.slowest_share, all > 0 ? of_stage / all : 1);
    result.largest_share =
        std::max(result.largest_share, costs.parameter_bytes > 0 ? parameters / costs.parameter_bytes : 1);
    if (stage == stages || done < all * stage / stages) continue;
    result.crossing_bytes = std::max(result.crossing_bytes, op.crossing_bytes);
    ++stage, of_stage = 0, parameters = 0;
  }
  return result;
}

// Ranks that sum together: how many of them are on a host, and how many such groups a host has. The stages of a pipeline are neighbours.
struct SumGroup {
  int hosts = 1, per_host = 1, groups_per_host = 1;
};

SumGroup sum_group(const RankLayout& layout, const PlanRequest& machine) {
  const int per_host = std::max(1, machine.gpus / layout.pipeline);
  const int inside = std::min(per_host, layout.data_parallel);
  return {.hosts = layout.data_parallel / inside,
          .per_host = inside,
          .groups_per_host = std::max(1, std::min(machine.gpus, layout.pipeline))};
}

// The ranks of a set of sharding, which are neighbours.
SumGroup group_in_set(const RankLayout& layout, const PlanRequest& machine) {
  const int inside = std::min(machine.gpus, layout.set);
  return {.hosts = layout.set / inside, .per_host = inside, .groups_per_host = machine.gpus / inside};
}

// The ranks that have the same place in their sets.
SumGroup group_of_place(const RankLayout& layout, const PlanRequest& machine) {
  const int sets = layout.data_parallel / layout.set, inside = std::max(1, machine.gpus / layout.set);
  return {.hosts = sets / inside, .per_host = inside, .groups_per_host = std::min(machine.gpus, layout.set)};
}

// Of an all-reduce of `bytes` of each group: inside the hosts first, then between them. All groups of a host share its network.
double all_reduce_seconds(double bytes, const SumGroup& group, const PlanRequest& machine) {
  const auto part = [](int ranks) { return ranks > 1 ? 2.0 * (ranks - 1) / ranks : 0; };
  const double local = part(group.per_host) * bytes / (machine.link_gb_s * kGiga);
  const double between = part(group.hosts) * bytes * group.groups_per_host / (machine.network_gb_s * kGiga);
  const double messages = 2.0 * (group.per_host - 1 + group.hosts - 1);
  return local + between + messages * machine.latency_us / 1e6;
}

double hidden(double seconds, double behind) { return std::max(kNeverHidden * seconds, seconds - behind); }

// Stages 1 and 2 sum gradients and gather parameters in each set, which is as much traffic as an all-reduce, but nothing hides the second
// half. Between the sets, the owners of a parameter sum its gradient. Stage 3 gathers the parameters twice, before the forward and the
// backward part, while the layers before are computed.
double sum_seconds(const RankLayout& layout, const StepCosts& costs, double compute,
                   const PlanRequest& machine) {
  if (layout.data_parallel == 1) return 0;
  const double bytes = costs.gradient_bytes * cut(costs, layout.pipeline, machine).largest_share;
  if (layout.sharding == 0)
    return hidden(all_reduce_seconds(bytes, sum_group(layout, machine), machine), kBackwardShare * compute) /
           costs.steps_per_sum;
  const double in_set = all_reduce_seconds(bytes, group_in_set(layout, machine), machine);
  const double between = all_reduce_seconds(bytes / layout.set, group_of_place(layout, machine), machine);
  if (layout.sharding < 3)
    return (hidden(in_set / 2 + between, kBackwardShare * compute) + in_set / 2) / costs.steps_per_sum;
  return hidden(in_set + (in_set / 2 + between) / costs.steps_per_sum, compute);
}

double send_seconds(const RankLayout& layout, const StepCosts& costs, const PlanRequest& machine) {
  if (layout.pipeline == 1) return 0;
  const double bandwidth = layout.pipeline <= machine.gpus ? machine.link_gb_s : machine.network_gb_s;
  const double bytes = 2 * layout.pipeline * cut(costs, layout.pipeline, machine).crossing_bytes;
  return bytes / (bandwidth * kGiga) + 2 * layout.micro_batches * machine.latency_us / 1e6;
}

// Returns the share of all elements that belongs to the rank with the most; it is about 1 / ranks if no parameter is very large.
double largest_part(const StepCosts& costs, int ranks) {
  const std::vector<std::int64_t>& elements = costs.parameter_elements;
  const std::vector<int> owners = choose_owners(elements, ranks);
  std::vector<double> owned(static_cast<std::size_t>(ranks), 0);
  double all = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    owned[static_cast<std::size_t>(owners[i])] += static_cast<double>(elements[i]);
    all += static_cast<double>(elements[i]);
  }
  return all > 0 ? *std::ranges::max_element(owned) / all : 1;
}

std::string gibibytes(double bytes) { return fmt::format("{:.2f}", bytes / (1 << 30)); }

std::string why_it_loses(const PlannedLayout& layout, const PlannedLayout& best, const PlanRequest& machine) {
  if (!layout.fits)
    return fmt::format("needs {} GiB, {} GiB are allowed", gibibytes(layout.memory.all()),
                       gibibytes(machine.memory_bytes));
  const StepTime &time = layout.time, &least = best.time;
  const double slower = time.all() - least.all();
  if (slower <= 0) return "as fast, but needs more parts to work together";
  const double bubble = time.bubble - least.bubble, sums = time.sums - least.sums,
               sends = time.pipeline - least.pipeline;
  const char* const cause = bubble >= sums && bubble >= sends ? "stages wait for each other"
                            : sums >= sends                   ? "waits for sums and parameters"
                                                              : "sends activations between stages";
  return fmt::format("{:.1f} % slower: {}", 100 * slower / least.all(), cause);
}

// strategy.pipeline and strategy.sharding exclude each other in every job. A set of sharding is a part of a host or consists of whole hosts.
std::vector<RankLayout> layouts_of(int ranks, int per_host, int batch) {
  std::vector<RankLayout> all;
  for (int pipeline = 1; pipeline <= ranks; ++pipeline) {
    if (ranks % pipeline != 0) continue;
    const int micro =
        pipeline == 1 ? 1 : std::min({4 * pipeline, batch * pipeline, kMostMicroBatches * pipeline});
    all.push_back({.data_parallel = ranks / pipeline, .pipeline = pipeline, .micro_batches = micro});
  }
  for (int sharding = 1; sharding <= 3; ++sharding)
    for (int set = 2; set <= ranks; ++set)
      if (ranks % set == 0 && (set % per_host == 0 || per_host % set == 0))
        all.push_back({.data_parallel = ranks, .sharding = sharding, .set = set});
  return all;
}

}  // namespace

std::string describe(const RankLayout& layout) {
  std::string text = fmt::format("data parallel {}", layout.data_parallel);
  if (layout.sharding > 0) text += fmt::format(", sharding stage {}", layout.sharding);
  if (layout.sharding > 0 && layout.set < layout.data_parallel)
    text += fmt::format(" in sets of {}", layout.set);
  if (layout.pipeline > 1)
    text += fmt::format(", pipeline {} of {}", layout.pipeline,
                        plural(layout.micro_batches, "micro batch", "es"));
  return text;
}

RankMemory memory_of(const RankLayout& layout, const StepCosts& costs, const PlanRequest& machine) {
  const double share = cut(costs, layout.pipeline, machine).largest_share;
  // A stage keeps the activations of as many micro batches as there are stages; each has 1/micro_batches of pipeline batches.
  const double kept =
      static_cast<double>(std::min(layout.pipeline, layout.micro_batches)) / layout.micro_batches;
  const double owned = layout.sharding == 0 ? 1 : largest_part(costs, layout.set);
  const auto part_from = [&](int stage) { return share * (layout.sharding >= stage ? owned : 1); };
  RankMemory memory = {.parameters = part_from(3) * costs.parameter_bytes,
                       .gradients = part_from(2) * costs.gradient_bytes,
                       .optimizer = part_from(1) * costs.optimizer_bytes,
                       .activations = costs.activation_bytes * (layout.pipeline == 1 ? 1 : kept),
                       .buffers = share * costs.buffer_bytes + costs.batches_in_memory * costs.batch_bytes};
  if (layout.sharding >= 3)
    memory.buffers += 2 * costs.largest_parameter_bytes;  // gathered, and the next one
  return memory;
}

StepTime time_of(const RankLayout& layout, const StepCosts& costs, const PlanRequest& machine) {
  StepTime time = {.compute = compute_seconds(costs, machine)};
  if (layout.pipeline > 1) {
    const double slowest = cut(costs, layout.pipeline, machine).slowest_share * layout.pipeline;
    const double turns = 1 + static_cast<double>(layout.pipeline - 1) / layout.micro_batches;
    time.bubble = time.compute * (slowest * turns - 1);
  }
  time.sums = sum_seconds(layout, costs, time.compute, machine);
  time.pipeline = send_seconds(layout, costs, machine);
  return time;
}

std::vector<PlannedLayout> plan_layouts(const StepCosts& costs, const job::StepShares& shares,
                                        const PlanRequest& machine, const IsPossible& is_possible) {
  std::vector<PlannedLayout> planned;
  for (const RankLayout& layout : layouts_of(shares.ranks, machine.gpus, shares.largest())) {
    if (!is_possible(layout)) continue;
    PlannedLayout one = {layout, memory_of(layout, costs, machine), time_of(layout, costs, machine)};
    one.fits = one.memory.all() <= machine.memory_bytes;
    one.samples_per_second = static_cast<double>(shares.samples) / one.time.all();
    planned.push_back(std::move(one));
  }
  std::stable_sort(planned.begin(), planned.end(), [](const PlannedLayout& a, const PlannedLayout& b) {
    return a.fits != b.fits ? a.fits : a.fits ? a.time.all() < b.time.all() : a.memory.all() < b.memory.all();
  });
  for (PlannedLayout& layout : planned)
    if (!layout.fits || layout.layout != planned.front().layout)
      layout.why = why_it_loses(layout, planned.front(), machine);
  return planned;
}

std::string describe(const std::vector<PlannedLayout>& layouts, const PlanRequest& machine) {
  std::size_t width = 0;
  for (const PlannedLayout& one : layouts) width = std::max(width, describe(one.layout).size());
  std::string text = fmt::format(
      "{} of {}; per rank: memory in GiB, and the time of a step in ms\n\n{:{}}  param  grad  optim  activ  buffer   all  fits  |  compute  bubble   sums   send  step  | samples/s\n",
      plural(machine.hosts, "host"), plural(machine.gpus, "rank"), "layout", width);
  for (const auto& [layout, memory, time, fits, speed, why] : layouts)
    text += fmt::format(
        "{:{}}  {:5.2f} {:5.2f}  {:5.2f}  {:5.2f}   {:5.2f} {:5.2f}  {:4}  |  {:7.1f} {:7.1f} {:6.1f} {:6.1f} {:5.1f}  | {:9.0f}{}\n",
        describe(layout), width, memory.parameters / (1 << 30), memory.gradients / (1 << 30),
        memory.optimizer / (1 << 30), memory.activations / (1 << 30), memory.buffers / (1 << 30),
        memory.all() / (1 << 30), fits ? "yes" : "no", time.compute * 1e3, time.bubble * 1e3, time.sums * 1e3,
        time.pipeline * 1e3, time.all() * 1e3, speed, why.empty() ? "" : "  " + why);
  if (!layouts.empty() && !layouts.front().fits)
    text += "\nno layout fits: take more hosts, a smaller batch, or recompute\n";
  return text;
}

}  // namespace fleetrun::runtime
