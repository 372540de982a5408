#include "runtime/tune/findings.h"

#include <algorithm>

#include <fmt/format.h>

namespace fleetrun::runtime {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr double kNoticeable = 0.02;  // of a step

struct AdvisedRow {
  Advice advice;
  const char* words;
  const char* why_not;  // it may not have been tried
};

constexpr AdvisedRow kRows[] = {
    {Advice::two_communicators, "2 communicators and num_threads 3",
     "there is one rank, or the job sets these keys"},
    {Advice::threads_of_devices, "num_threads of 2 to 4 times the devices", "the job sets num_threads"},
    {Advice::fuse, "fusions", "the job sets them, or the model has nothing to fuse"},
    {Advice::tenth, "all-reduces of a tenth of all gradient bytes",
     "there is one rank, or the job sets fuse_grad_size_in_MB"},
    {Advice::drop_less_often, "num_iteration_per_drop_scope 30", "the job sets it"},
    {Advice::bigger_batch, "bigger batches",
     "--memory, which says how much memory a rank may use, is missing, or the job sets data.batch_size or train.global_batch"},
};

// The search takes the best of many times, so what seems faster there may not be.
std::string judge(const Effect& effect, bool is_confirmed) {
  const std::string found = fmt::format("{:.3f} ({:.3f} to {:.3f}) of the time", effect.ratio,
                                        effect.interval.low, effect.interval.high);
  if (effect.is_faster())
    return is_confirmed ? "faster, " + found : "seems faster, " + found + ", and was not measured again";
  return effect.is_slower() ? "slower, " + found : "no clear difference, " + found;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Why no candidate that follows the advice has a time.
std::string why_untimed(const AdvisedRow& row, const Tuned& tuned, const SpaceFacts& space) {
  for (const Candidate& candidate : search_space(space)) {
    if (candidate.advice != row.advice) continue;
    if (has(tuned.same, candidate.name)) return "changes nothing here, or is not possible";
    if (has(tuned.left_out, candidate.name)) return "not tried: the budget is too small";
  }
  return fmt::format("not tried: {}", row.why_not);
}

std::string of_row(const AdvisedRow& row, const Tuned& tuned, const SpaceFacts& space) {
  const auto best = std::find_if(tuned.tried.begin(), tuned.tried.end(),
                                 [&](const Effect& effect) { return effect.advice == row.advice; });
  if (best == tuned.tried.end()) return fmt::format("{}: {}", row.words, why_untimed(row, tuned, space));
  const bool is_confirmed = tuned.confirmed && tuned.confirmed->name == best->name;
  return fmt::format("{}: {} ({})", row.words, judge(is_confirmed ? *tuned.confirmed : *best, is_confirmed),
                     best->name);
}

std::string percent(double share) {
  return share < 0.1 ? fmt::format("{:.2g} %", 100 * share) : fmt::format("{:.0f} %", 100 * share);
}

std::string of_loader(const FindingFacts& facts) {
  const std::string found =
      fmt::format("a step waits for its batch during {} of its time with {} loader threads",
                  percent(facts.wait_share), facts.loader_threads);
  return facts.wait_share < kNoticeable ? found + ": more threads gain nothing" : found;
}

std::string of_fetching(const FindingFacts& facts) {
  const std::string found = fmt::format("fetching the loss takes {} of a step", percent(facts.fetch_share));
  return facts.fetch_share < kNoticeable ? found + ": fetching less often gains nothing"
                                         : found + ": try a larger train.fetch_every";
}

}  // namespace

std::vector<std::string> findings(const Tuned& tuned, const FindingFacts& facts) {
  std::vector<std::string> lines;
  for (const AdvisedRow& row : kRows) lines.push_back(of_row(row, tuned, facts.space));
  lines.push_back(of_fetching(facts));
  lines.push_back(of_loader(facts));
  lines.push_back(fmt::format("a rank uses {:.1f} MiB as the job is",
                              static_cast<double>(facts.memory_bytes) / kMebibyte));
  if (!facts.space.amp)
    lines.emplace_back("mixed precision: not tried: it changes the results; --amp allows it");
  else if (!facts.space.narrow)
    lines.emplace_back("mixed precision: not tried: a rank's device computes in f32 only");
  return lines;
}

}  // namespace fleetrun::runtime
