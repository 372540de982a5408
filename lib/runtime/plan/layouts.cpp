#include "runtime/plan/layouts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text/plural.h"

namespace fleetrun::runtime {
namespace {

constexpr double kGiga = 1e9;
constexpr double kForwardAndBackward = 3;   // times the work of the forward part
constexpr double kBackwardShare = 2.0 / 3;  // of the computation: sums of gradients hide behind it
constexpr double kNeverHidden = 0.1;        // of a sum: its last group comes after the backward part

double forward_seconds(const ForwardCost& op, const PlanRequest& machine) {
  return std::max(op.flops / (machine.tflops * 1e12), op.moved_bytes / (machine.memory_gb_s * kGiga));
}

double forward_seconds(const StepCosts& stage, const PlanRequest& machine) {
  double seconds = 0;
  for (const ForwardCost& op : stage.forward) seconds += forward_seconds(op, machine);
  return seconds;
}

// Returns seconds of the forward part, or with `step_ms` what is in the same ratio.
struct StageTimes {
  double mean = 0, slowest = 0;
};

StageTimes stage_times(const LayoutCosts& costs, const PlanRequest& machine) {
  StageTimes times;
  for (const StepCosts& stage : costs.stages) {
    const double seconds = kForwardAndBackward * forward_seconds(stage, machine);
    times.mean += seconds / static_cast<double>(costs.stages.size());
    times.slowest = std::max(times.slowest, seconds);
  }
  if (machine.step_ms <= 0) return times;
  const double measured = machine.step_ms / 1e3;
  return {.mean = measured, .slowest = times.mean > 0 ? measured * times.slowest / times.mean : measured};
}

// Returns the bytes of the gradients that a rank sums with others. They are in proportion to the parameters of its stage.
double summed_bytes(const LayoutCosts& costs) {
  if (costs.stages.size() == 1) return costs.gradient_bytes;
  double all = 0, most = 0;
  for (const StepCosts& stage : costs.stages) {
    all += stage.parameter_bytes;
    most = std::max(most, stage.parameter_bytes);
  }
  return all > 0 ? costs.gradient_bytes * most / all : 0;
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
double sum_seconds(const RankLayout& layout, const LayoutCosts& costs, double compute,
                   const PlanRequest& machine) {
  if (layout.data_parallel == 1) return 0;
  const double bytes = summed_bytes(costs);
  if (layout.sharding == 0)
    return hidden(all_reduce_seconds(bytes, sum_group(layout, machine), machine), kBackwardShare * compute) /
           costs.steps_per_sum;
  const double in_set = all_reduce_seconds(bytes, group_in_set(layout, machine), machine);
  const double between = all_reduce_seconds(bytes / layout.set, group_of_place(layout, machine), machine);
  if (layout.sharding < 3)
    return (hidden(in_set / 2 + between, kBackwardShare * compute) + in_set / 2) / costs.steps_per_sum;
  return hidden(in_set + (in_set / 2 + between) / costs.steps_per_sum, compute);
}

// Of the stage that sends the most.
double send_seconds(const RankLayout& layout, const LayoutCosts& costs, const PlanRequest& machine) {
  if (layout.pipeline == 1) return 0;
  const double bandwidth = layout.pipeline <= machine.gpus ? machine.link_gb_s : machine.network_gb_s;
  double bytes = 0;
  for (const StepCosts& stage : costs.stages) bytes = std::max(bytes, stage.sent_bytes);
  return bytes / (bandwidth * kGiga) + 2 * costs.micro_batches * machine.latency_us / 1e6;
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
std::vector<RankLayout> layouts_of(int ranks, int per_host) {
  std::vector<RankLayout> all;
  for (int pipeline = 1; pipeline <= ranks; ++pipeline)
    if (ranks % pipeline == 0) all.push_back({.data_parallel = ranks / pipeline, .pipeline = pipeline});
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

RankMemory memory_of(const LayoutCosts& costs) {
  RankMemory most;
  for (const StepCosts& stage : costs.stages) {
    const RankMemory memory = {.parameters = stage.parameter_bytes,
                               .gradients = stage.gradient_bytes,
                               .optimizer = stage.optimizer_bytes,
                               .activations = stage.activation_bytes,
                               .buffers = stage.buffer_bytes + costs.batches_in_memory * stage.batch_bytes};
    if (memory.all() > most.all()) most = memory;
  }
  return most;
}

StepTime time_of(const RankLayout& layout, const LayoutCosts& costs, const PlanRequest& machine) {
  const StageTimes stages = stage_times(costs, machine);
  StepTime time = {.compute = stages.mean};
  if (layout.pipeline > 1) {
    const double turns = 1 + static_cast<double>(layout.pipeline - 1) / costs.micro_batches;
    time.bubble = stages.slowest * turns - stages.mean;
  }
  time.sums = sum_seconds(layout, costs, time.compute, machine);
  time.pipeline = send_seconds(layout, costs, machine);
  return time;
}

std::vector<PlannedLayout> plan_layouts(const job::StepShares& shares, const PlanRequest& machine,
                                        const CostsOf& costs_of) {
  std::vector<PlannedLayout> planned;
  for (RankLayout layout : layouts_of(shares.ranks, machine.gpus)) {
    const std::optional<LayoutCosts> costs = costs_of(layout);
    if (!costs) continue;
    layout.micro_batches = costs->micro_batches;
    PlannedLayout one = {layout, memory_of(*costs), time_of(layout, *costs, machine)};
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
