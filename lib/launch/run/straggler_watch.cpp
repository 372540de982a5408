#include "launch/run/straggler_watch.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "launch/nodes/places.h"
#include "launch/serve/prometheus_exporter.h"

namespace fleetrun::launch {
namespace {

constexpr int kLooksUntilFound = 10;
constexpr std::size_t kMostLines = 4;  // at once; half of the ranks may be slow

StepTimes times_of(const RankMetrics& rank) {
  if (!rank.progress) return {};
  const auto spent = [&](TimeUse use) { return rank.spent_ns[static_cast<std::size_t>(use)]; };
  const Phase phase = rank.progress->phase;
  return {.training = rank.up && phase >= Phase::training && phase < Phase::finished,
          .steps = rank.progress->step,
          .data_ns = spent(TimeUse::data),
          .compute_ns = spent(TimeUse::compute),
          .communication_ns = spent(TimeUse::communication)};
}

}  // namespace

StragglerWatch::StragglerWatch(const Sources& sources, ExitReport& report)
    : sources_(sources),
      report_(report),
      rules_(sources.plan.options.straggler_after.value.value_or(Clock::duration::zero())) {}

std::optional<Clock::duration> StragglerWatch::interval() const {
  const auto& after = sources_.plan.options.straggler_after.value;
  if (!after || !sources_.plan.embedded) return std::nullopt;
  if (sources_.nodes != nullptr && !sources_.nodes->is_first()) return std::nullopt;
  return std::min<Clock::duration>(NodeFigures::kEvery, *after / kLooksUntilFound);
}

void StragglerWatch::look(TimePoint now) {
  std::vector<StepTimes> ranks;
  for (const RankMetrics& rank :
       measure_run({sources_.state, report_, [this] { return sources_.others.ranks(); }}).ranks)
    ranks.push_back(times_of(rank));
  const std::vector<Straggler> found = rules_.look(ranks, now);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto step = ranks[static_cast<std::size_t>(found[i].rank)].steps;
    report_.stragglers.push_back({.attempt = sources_.state.verdict.attempt,
                                  .step = step,
                                  .host = host_of(found[i].rank),
                                  .found = found[i]});
    if (i < kMostLines) sources_.say(report_.stragglers.back().describe());
  }
  if (found.size() > kMostLines)
    sources_.say(
        fmt::format("{} more are slow; fleetrun ps shows them", plural(found.size() - kMostLines, "rank")));
}

std::string StragglerWatch::host_of(int rank) const {
  if (sources_.nodes == nullptr) return report_.host;
  const Placed& placed = sources_.nodes->placed();
  const auto node = node_of_rank(placed, rank);
  return node ? placed.nodes[static_cast<std::size_t>(*node)].host : "";
}

}  // namespace fleetrun::launch
