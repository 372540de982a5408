#include "runtime/tune/halving.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kFinalists = 3;
constexpr int kLeastTurns = 2, kMostTurns = 24;  // of a round
constexpr double kWarmTurns = 2;                 // of a candidate in each round, which are not timed
constexpr double kShareOfRounds = 0.75;   // of the time before the confirmation; combinations get the rest
constexpr double kWorthCombining = 0.99;  // of the default's time
constexpr std::size_t kMostCombined = 6;  // changes in one combination

struct Trial {
  Candidate candidate;
  std::vector<double> ratios = {};
  bool measured = false;

  double ratio() const { return median(ratios); }
};

Effect effect_of(const Trial& trial) {
  Effect effect = runtime::effect_of(trial.candidate.name, trial.candidate.settings, trial.ratios);
  effect.advice = trial.candidate.advice;
  return effect;
}

double seconds_before_turns(const SearchBudget& budget) {
  return budget.build_seconds + kWarmTurns * budget.turn_seconds;
}

// As many turns of the base and `candidates` others as the time allows.
int turns_within(double seconds, std::size_t candidates, double before_turns, const SearchBudget& budget) {
  const auto count = static_cast<double>(candidates);
  const double turns = (seconds - count * before_turns) / (budget.turn_seconds * (count + 1));
  return static_cast<int>(std::clamp<double>(turns, kLeastTurns, kMostTurns));
}

class Halving {
 public:
  Halving(const SearchBudget& budget, const Measure& measure)
      : budget_(budget), measure_(measure), before_turns_(seconds_before_turns(budget)) {}

  SearchResult search(const std::vector<Candidate>& candidates) {
    halve(add(within_budget(candidates)));
    measure_round(add(combinations()), seconds_left());
    confirm();
    return finish();
  }

 private:
  double cost_of_confirming() const {
    return 2 * budget_.turn_seconds * kConfirmingTurns + kConfirmingRounds * before_turns_;
  }
  double seconds_left() const { return budget_.seconds - cost_of_confirming() - result_.spent_seconds; }

  std::vector<Candidate> within_budget(const std::vector<Candidate>& candidates) {
    const double of_each = budget_.turn_seconds * kLeastTurns + before_turns_;
    const double affordable = std::max(0.0, seconds_left() * kShareOfRounds / of_each);
    const std::size_t count = std::min(candidates.size(), static_cast<std::size_t>(affordable));
    for (std::size_t i = count; i < candidates.size(); ++i) result_.left_out.push_back(candidates[i].name);
    return {candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  std::vector<std::size_t> add(const std::vector<Candidate>& candidates) {
    std::vector<std::size_t> added;
    for (const Candidate& candidate : candidates) {
      added.push_back(trials_.size());
      trials_.push_back({candidate});
    }
    return added;
  }

  void halve(std::vector<std::size_t> alive) {
    if (alive.empty()) return;
    const double end = kShareOfRounds * seconds_left();  // spent seconds then
    const double halvings = std::log2(static_cast<double>(alive.size()) / kFinalists);
    for (int rounds = std::max(1, static_cast<int>(std::ceil(halvings)) + 1); rounds > 0; --rounds) {
      measure_round(alive, (end - result_.spent_seconds) / rounds);
      std::erase_if(alive, [&](std::size_t i) { return trials_[i].ratios.empty(); });
      sort(alive);
      const std::size_t half = std::max(kFinalists, (alive.size() + 1) / 2);
      if (alive.size() > half) alive.resize(half);
    }
  }

  void measure_round(const std::vector<std::size_t>& numbers, double seconds) {
    if (numbers.empty() || seconds <= 0) return;
    std::vector<Candidate> candidates;
    for (const std::size_t i : numbers) candidates.push_back(trials_[i].candidate);
    const Measured found = measure(candidates, turns_within(seconds, numbers.size(), before_turns_, budget_));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      trials_[numbers[i]].measured = true;
      std::vector<double>& ratios = trials_[numbers[i]].ratios;
      ratios.insert(ratios.end(), found.ratios[i].begin(), found.ratios[i].end());
    }
  }

  // Learns how long candidates take before their first turn.
  Measured measure(const std::vector<Candidate>& candidates, int turns) {
    Measured found = measure_(Candidate{}, candidates, turns);
    result_.spent_seconds += found.seconds;
    const auto count = static_cast<double>(candidates.size());
    before_turns_ = std::max(0.0, (found.seconds - turns * budget_.turn_seconds * (count + 1)) / count);
    return found;
  }

  void sort(std::vector<std::size_t>& numbers) const {
    std::stable_sort(numbers.begin(), numbers.end(),
                     [&](std::size_t a, std::size_t b) { return trials_[a].ratio() < trials_[b].ratio(); });
  }

  std::vector<std::size_t> by_ratio() const {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < trials_.size(); ++i)
      if (!trials_[i].ratios.empty()) numbers.push_back(i);
    sort(numbers);
    return numbers;
  }

  // The two best changes together, and all changes together that look worthwhile.
  std::vector<Candidate> combinations() const {
    std::vector<Candidate> found;
    std::optional<Candidate> all;
    std::size_t parts = 0;
    for (const std::size_t i : by_ratio()) {
      const Trial& trial = trials_[i];
      if (trial.ratio() >= kWorthCombining || parts == kMostCombined) break;
      const std::optional<Candidate> more = all ? combine(*all, trial.candidate) : trial.candidate;
      if (!more) continue;
      all = more;
      if (++parts == 2) found.push_back(*all);
    }
    if (parts > 2) found.push_back(*all);
    return found;
  }

  // The best one, else the second best, else the default.
  void confirm() {
    const std::vector<std::size_t> best = by_ratio();
    constexpr std::size_t kAttempts = 2;
    for (std::size_t i = 0; i < std::min(kAttempts, best.size()); ++i) {
      const Trial& trial = trials_[best[i]];
      if (trial.ratio() >= 1) return;
      if (i > 0 && budget_.seconds - result_.spent_seconds < cost_of_confirming()) return;
      const Trial again = measure_again(trial.candidate);
      if (again.ratios.empty()) continue;
      result_.confirmed = effect_of(again);
      if (!result_.confirmed->is_faster()) continue;
      result_.winner = trial.candidate;
      return;
    }
  }

  // In all the time that is left, but the number of turns is fixed before the first one: looking at the interval after
  // each turn would find effects that are none.
  Trial measure_again(const Candidate& candidate) {
    Trial again = {candidate};
    const double of_round = (budget_.seconds - result_.spent_seconds) / kConfirmingRounds;
    const int turns =
        std::max(kConfirmingTurns / kConfirmingRounds, turns_within(of_round, 1, before_turns_, budget_));
    for (int round = 0; round < kConfirmingRounds; ++round) {
      const Measured found = measure({candidate}, turns);
      again.ratios.insert(again.ratios.end(), found.ratios[0].begin(), found.ratios[0].end());
    }
    return again;
  }

  SearchResult finish() {
    for (const std::size_t i : by_ratio()) result_.tried.push_back(effect_of(trials_[i]));
    for (const Trial& trial : trials_)
      if (trial.ratios.empty())
        (trial.measured ? result_.same : result_.left_out).push_back(trial.candidate.name);
    return std::move(result_);
  }

  const SearchBudget budget_;
  const Measure& measure_;
  double before_turns_;  // seconds of a candidate in each round
  std::vector<Trial> trials_;
  SearchResult result_;
};

}  // namespace

Effect effect_of(const std::string& name, const std::vector<std::string>& settings,
                 const std::vector<double>& ratios) {
  return {.name = name,
          .settings = settings,
          .ratio = median(ratios),
          .interval = interval_of_median(ratios),
          .turns = static_cast<int>(ratios.size())};
}

SearchResult find_fastest(const std::vector<Candidate>& candidates, const SearchBudget& budget,
                          const Measure& measure) {
  return Halving(budget, measure).search(candidates);
}

std::vector<Effect> explain(const Candidate& winner, const SearchBudget& budget, const Measure& measure) {
  std::vector<Effect> effects;
  if (winner.is_default()) return effects;
  std::vector<Candidate> rest;
  for (std::size_t i = 0; i < winner.settings.size(); ++i) {
    rest.push_back(without(winner, i));
    rest.back().name = winner.settings[i];
  }
  const int turns = turns_within(budget.seconds, rest.size(), seconds_before_turns(budget), budget);
  const Measured found = measure(winner, rest, turns);
  for (std::size_t i = 0; i < rest.size(); ++i)
    effects.push_back(found.ratios[i].empty()
                          ? Effect{.name = rest[i].name, .settings = {winner.settings[i]}}
                          : effect_of(rest[i].name, {winner.settings[i]}, found.ratios[i]));
  return effects;
}

}  // namespace fleetrun::runtime
