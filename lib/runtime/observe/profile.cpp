#include "runtime/observe/profile.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace fleetrun::runtime {
namespace {

double seconds_of(std::int64_t nanoseconds, int steps) {
  return static_cast<double>(nanoseconds) / 1e9 / steps;
}

// Each value counts once, though an op may both read and write it.
std::size_t bytes_of(const Program& program, const Op& op) {
  std::size_t bytes = 0;
  for (const std::vector<ValueId>* ids : {&op.inputs, &op.outputs})
    for (const ValueId id : *ids)
      if (id != kNone) bytes += program.value(id).bytes();
  return bytes;
}

double milliseconds(double seconds) { return seconds * 1e3; }
double megabytes(double bytes) { return bytes / 1e6; }

// "53"; "0.33" of one that runs in every third step.
std::string describe_count(double ops) { return fmt::format("{:.{}f}", ops, ops == std::round(ops) ? 0 : 2); }

}  // namespace

Profile make_profile(const Program& program, const ProfileMark& begin, const ProfileMark& end, int steps,
                     const std::vector<OpTime>& alone) {
  std::map<std::string, KindOfOp> kinds;
  std::int64_t in_ops = 0;
  const auto runs_in_a_step = [&](std::size_t id) {
    return static_cast<double>(end.op_runs[id] - begin.op_runs[id]) / steps;
  };
  for (std::size_t id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    const std::int64_t took = end.op_ns[id] - begin.op_ns[id];
    const double runs = runs_in_a_step(id);
    KindOfOp& kind = kinds[op.type];
    kind.type = op.type;
    kind.ops += runs;
    kind.seconds += seconds_of(took, steps);
    kind.bytes += runs * static_cast<double>(bytes_of(program, op));
    in_ops += took;
  }
  for (const OpTime& op : alone)
    kinds[op.type].alone_seconds += runs_in_a_step(static_cast<std::size_t>(op.op)) * op.seconds;
  Profile profile = {.steps = steps,
                     .seconds = seconds_of(end.time_ns - begin.time_ns, steps),
                     .data_seconds = seconds_of(end.data_ns - begin.data_ns, steps),
                     .idle_seconds = seconds_of(end.step_ns - begin.step_ns - in_ops, steps),
                     .kinds = {}};
  for (auto& [type, kind] : kinds)
    if (kind.ops > 0) profile.kinds.push_back(std::move(kind));
  std::stable_sort(profile.kinds.begin(), profile.kinds.end(),
                   [](const KindOfOp& a, const KindOfOp& b) { return a.seconds > b.seconds; });
  return profile;
}

std::string describe(const Profile& profile) {
  std::string text =
      fmt::format("profile of {} steps, {:.1f} ms each:\n", profile.steps, milliseconds(profile.seconds));
  text += fmt::format("{:34} {:>5} {:>9} {:>7} {:>9} {:>8} {:>9} {:>7}\n", "kind of op", "ops", "ms", "share",
                      "alone ms", "of limit", "MB moved", "GB/s");
  double all = 0, alone = 0;
  for (const KindOfOp& kind : profile.kinds) {
    const bool is_collective = kind.alone_seconds == 0;
    text += fmt::format("{:34} {:>5} {:9.2f} {:6.1f}% {:>9} {:>8} {:9.1f} {:7.1f}\n", kind.type,
                        describe_count(kind.ops), milliseconds(kind.seconds),
                        100 * kind.seconds / profile.seconds,
                        is_collective ? "" : fmt::format("{:.2f}", milliseconds(kind.alone_seconds)),
                        is_collective ? "" : fmt::format("{:.2f}", kind.alone_seconds / kind.seconds),
                        megabytes(kind.bytes), kind.bytes / 1e9 / kind.seconds);
    if (!is_collective) all += kind.seconds;
    alone += kind.alone_seconds;
  }
  const auto reorders = std::find_if(profile.kinds.begin(), profile.kinds.end(),
                                     [](const KindOfOp& kind) { return kind.type == "reorder"; });
  text += fmt::format("reorders: {} a step, {:.1f} MB\n",
                      describe_count(reorders == profile.kinds.end() ? 0.0 : reorders->ops),
                      reorders == profile.kinds.end() ? 0.0 : megabytes(reorders->bytes));
  text += fmt::format(
      "ops but collectives: {:.2f} of their limit; idle in steps: {:.2f} %, waiting for batches: {:.2f} %\n",
      alone / all, 100 * std::max(0.0, profile.idle_seconds) / profile.seconds,
      100 * profile.data_seconds / profile.seconds);
  return text;
}

}  // namespace fleetrun::runtime
