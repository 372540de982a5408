#include "runtime/training/tuning/tune_job.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <ostream>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/run/timeline.h"
#include "base/system/environment.h"
#include "base/text/plural.h"
#include "job/spec/step_share.h"
#include "runtime/exec/algorithm_cache.h"
#include "runtime/exec/search_algorithms.h"
#include "runtime/observe/gather_texts.h"
#include "runtime/tune/findings.h"
#include "runtime/tune/tune_cache.h"

namespace fleetrun::runtime {
namespace {

constexpr double kAutoSeconds = 60;       // of strategy.auto
constexpr double kNoticeableWait = 0.02;  // of a step, for its batch
constexpr int kLoaderTurns = 9;
constexpr double kShareOfExplaining = 0.35;  // of the budget, with --explain

std::set<std::string> keys_of_user(const job::ParsedJob& job) {
  std::set<std::string> keys;
  for (const job::KeyValue& value : job.values)
    if (!value.origin.starts_with("default")) keys.insert(value.key);
  return keys;
}

bool is_of_loaders(const Effect& effect) {
  return std::ranges::all_of(
      effect.settings, [](const std::string& word) { return word.starts_with("data.loader_threads="); });
}

// A larger budget may find something. The loaders have a share of their own.
bool found_nothing_in_time(const Tuned& tuned) {
  return std::ranges::all_of(tuned.tried, is_of_loaders) && tuned.same.empty() && !tuned.left_out.empty();
}

// One rank's view of one tuning.
class Tuning {
 public:
  Tuning(const TuningRank& rank, const TuneRequest& request, std::ostream& out)
      : rank_(rank), request_(request), out_(out), job_(rank.job_with({})) {}

  TuneOutcome run() {
    TuneOutcome outcome;
    const std::optional<Tuned> kept = request_.again ? std::nullopt : find_kept();
    const bool lacks_explanation =
        kept && request_.explain && kept->explained.empty() && !kept->settings.empty();
    if (kept && !lacks_explanation) {
      outcome.tuned = *kept;
      outcome.kept = true;
    } else {
      measure(kept, outcome);
    }
    job::JobSpec job = rank_.job_with(outcome.tuned.settings).spec;
    if (outcome.kept || job.strategy.use_hierarchical_allreduce) {
      outcome.job = std::move(job);
      return outcome;
    }
    take_groups(job.strategy);
    outcome.job = std::move(job);
    return outcome;
  }

 private:
  bool is_first() const { return rank_.world.env.rank == 0; }

  std::string key() const {
    const RankEnv& env = rank_.world.env;
    return describe(TuneKey{.values = job_.values,
                            .ranks = env.world_size,
                            .ranks_per_node = env.local_size,
                            .threads = job_.spec.train.threads.value_or(env.threads),
                            .amp = request_.amp,
                            .memory = request_.memory ? std::to_string(*request_.memory) : ""});
  }

  // Rank 0 reads the file, and all ranks take what it says.
  std::optional<Tuned> find_kept() {
    std::string text;
    with_cache("reading", [&](const TuneCache& cache) {
      if (const std::optional<Tuned> found = cache.read(key())) text = to_json(as_json(*found));
    });
    text = text_of_first(std::move(text), *rank_.world.communicator);
    if (text.empty()) return std::nullopt;
    return parse_tuned(read_json(text).root);
  }

  void measure(const std::optional<Tuned>& kept, TuneOutcome& outcome) {
    const std::int64_t start = monotonic_ns();
    StepTimer timer(rank_, request_.memory.value_or(0));
    facts_ = timer.look_at_default();
    say(fmt::format("tune: a step of the unchanged job takes {:.3g} ms", facts_.step_seconds * 1e3));
    if (kept)
      outcome.tuned = *kept;
    else
      search(timer, outcome.tuned, start);
    if (request_.explain) explain_winner(timer, outcome.tuned);
    outcome.tuned.seconds = agreed_seconds(start);
    outcome.timed_steps = timer.timed_steps();
    groups_ = timer.groups();
    if (!found_nothing_in_time(outcome.tuned))
      with_cache("writing", [&](const TuneCache& cache) { cache.write(key(), outcome.tuned); });
  }

  void search(StepTimer& timer, Tuned& tuned, std::int64_t start) {
    const SpaceFacts space = space_facts();
    const std::vector<Candidate> candidates = search_space(space);
    const double share = request_.explain ? 1 - kShareOfExplaining : 1;
    const SearchBudget budget = {.seconds = share * request_.budget_seconds - agreed_seconds(start),
                                 .turn_seconds = timer.turn_seconds(),
                                 .build_seconds = facts_.build_seconds};
    SearchResult result = find_fastest(candidates, budget, told_measure(timer));
    tuned = {.settings = result.winner.settings,
             .confirmed = result.confirmed,
             .tried = std::move(result.tried),
             .explained = {},
             .same = std::move(result.same),
             .left_out = std::move(result.left_out),
             .notes = {},
             .default_seconds = facts_.step_seconds,
             .made = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)))};
    try_loaders(timer, tuned, start);
    tuned.notes = findings(tuned, {.space = space,
                                   .wait_share = facts_.wait_share,
                                   .fetch_share = facts_.fetch_share,
                                   .memory_bytes = facts_.memory_bytes,
                                   .loader_threads = job_.spec.data.loader_threads});
  }

  // More loader threads, where steps wait for their batches.
  void try_loaders(StepTimer& timer, Tuned& tuned, std::int64_t start) {
    if (facts_.wait_share < kNoticeableWait || keys_of_user(job_).count("data.loader_threads") != 0) return;
    const int now = job_.spec.data.loader_threads;
    const std::vector<int> threads = {2 * now, 4 * now};
    const double needed = 3 * kLoaderTurns * timer.loader_turn_seconds();
    if (agreed_seconds(start) + needed > request_.budget_seconds) {
      tuned.left_out.emplace_back("more loader threads");
      return;
    }
    say(fmt::format("tune: {} of {} and {} loader threads", plural(kLoaderTurns, "turn"), threads[0],
                    threads[1]));
    const Measured found = timer.measure_loaders({"the result", tuned.settings}, threads, kLoaderTurns);
    std::vector<Effect> effects;
    for (std::size_t i = 0; i < threads.size(); ++i)
      effects.push_back(effect_of(fmt::format("{} loader threads", threads[i]),
                                  {fmt::format("data.loader_threads={}", threads[i])}, found.ratios[i]));
    const Effect& better = effects[0].ratio <= effects[1].ratio ? effects[0] : effects[1];
    if (better.is_faster()) tuned.settings.insert(tuned.settings.begin(), better.settings[0]);
    for (Effect& effect : effects) tuned.tried.push_back(std::move(effect));
  }

  void explain_winner(StepTimer& timer, Tuned& tuned) {
    const SearchBudget budget = {.seconds = kShareOfExplaining * request_.budget_seconds,
                                 .turn_seconds = timer.turn_seconds(),
                                 .build_seconds = facts_.build_seconds};
    tuned.explained =
        explain({.name = "the result", .settings = tuned.settings}, budget, told_measure(timer));
  }

  SpaceFacts space_facts() const {
    const RankEnv& env = rank_.world.env;
    return {.ranks = env.world_size,
            .ranks_per_node = env.local_size,
            .nodes = env.nodes,
            .gradient_bytes = facts_.gradient_bytes,
            .batch = job::plan_shares(job_.spec, env.world_size).largest(),
            .amp = request_.amp,
            .narrow = all_compute_in_narrow_types(),
            .memory = request_.memory.has_value(),
            .fixed = keys_of_user(job_)};
  }

  Measure told_measure(StepTimer& timer) {
    return [this, &timer](const Candidate& base, const std::vector<Candidate>& candidates, int turns) {
      say(fmt::format(
          "tune: {} of {}", plural(turns, "turn"),
          candidates.size() == 1 ? candidates[0].name : fmt::format("{} candidates", candidates.size())));
      return timer.measure(base, candidates, turns);
    };
  }

  bool all_compute_in_narrow_types() const {
    std::int64_t narrow = rank_.device.narrow_types().empty() ? 0 : 1;
    if (rank_.world.env.world_size > 1)
      rank_.world.communicator->all_reduce({&narrow, 1, DType::i64}, comm::ReduceOp::min);
    return narrow == 1;
  }

  double agreed_seconds(std::int64_t start) const {
    std::int64_t ns = monotonic_ns() - start;
    if (rank_.world.env.world_size > 1)
      rank_.world.communicator->all_reduce({&ns, 1, DType::i64}, comm::ReduceOp::max);
    return static_cast<double>(ns) / 1e9;
  }

  // On rank 0. A training does not fail because something is not remembered.
  template <typename Work>
  void with_cache(const char* doing, const Work& work) {
    if (!is_first()) return;
    try {
      work(TuneCache(cache_folder(Environment::of_this_process()), place_of(rank_.device)));
    } catch (const Error& error) {
      out_ << fmt::format("warning: {} the kept results of tuning: {}", doing, error.message()) << std::endl;
    }
  }

  void take_groups(job::StrategySpec& strategy) const {
    strategy.use_hierarchical_allreduce = groups_.use_hierarchical_allreduce;
    strategy.hierarchical_allreduce_algorithm = groups_.hierarchical_allreduce_algorithm;
    strategy.hierarchical_allreduce_inter_nranks = groups_.hierarchical_allreduce_inter_nranks;
  }

  void say(const std::string& line) {
    if (is_first()) out_ << line << std::endl;
  }

  const TuningRank& rank_;
  const TuneRequest& request_;
  std::ostream& out_;
  const job::ParsedJob job_;
  DefaultFacts facts_;
  job::StrategySpec groups_;
};

std::string describe_auto(const TuneOutcome& outcome) {
  const Tuned& tuned = outcome.tuned;
  std::string text =
      outcome.kept
          ? fmt::format("auto: no step was timed, because the result of {} is kept", tuned.made)
          : fmt::format("auto: {} timed in {:.0f} s", plural(outcome.timed_steps, "step"), tuned.seconds);
  if (tuned.settings.empty()) return text + "; the job keeps its settings";
  text += fmt::format("; taken: {}", fmt::join(tuned.settings, " "));
  if (!tuned.confirmed) return text;
  const Effect& found = *tuned.confirmed;
  return text + fmt::format(", {:.3f} ({:.3f} to {:.3f}) of the time of a step", found.ratio,
                            found.interval.low, found.interval.high);
}

}  // namespace

TuneOutcome tune_job(const TuningRank& rank, const TuneRequest& request, std::ostream& out) {
  if (rank.world.env.device != "cpu")
    throw Error(
        ErrorKind::config,
        fmt::format("fleetrun tune and strategy.auto time steps on the CPU only; this rank has the device {}",
                    rank.world.env.device),
        "strategy.auto=false trains with the settings of the job");
  return Tuning(rank, request, out).run();
}

job::JobSpec auto_tuned_job(const TuningRank& rank, std::ostream& out) {
  const TuneOutcome outcome = tune_job(rank, {.budget_seconds = kAutoSeconds}, out);
  if (rank.world.env.rank == 0) out << describe_auto(outcome) << std::endl;
  return outcome.job;
}

}  // namespace fleetrun::runtime
