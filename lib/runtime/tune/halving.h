// Finds the fastest of several candidates by successive halving (Jamieson and Talwalkar 2016, arXiv:1502.07943): each
// round spends the same time, on half as many candidates as the round before. It decides from the times that it is
// given, so ranks that are given the same times decide the same.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tune/search_space.h"
#include "runtime/tune/statistics.h"

namespace fleetrun::runtime {

// What a round found.
struct Measured {
  // By candidate: its seconds per sample, divided by those of the base in the same turn. Empty: its step does the same as that of the base,
  // or the job cannot have its settings.
  std::vector<std::vector<double>> ratios;
  double seconds = 0;  // that the measurement took, everything included
};

// Times the base and the candidates in `turns` turns: in each of them every one makes the same number of steps.
using Measure =
    std::function<Measured(const Candidate& base, const std::vector<Candidate>& candidates, int turns)>;

struct SearchBudget {
  double seconds = 0;        // for everything
  double turn_seconds = 0;   // of the default's steps in one turn
  double build_seconds = 0;  // to prepare one candidate for its first turn
};

// At least, of the winner and the default: enough for an interval of 95 %. Both are prepared several times, because equal trainings
// may have different luck with their places in memory.
constexpr int kConfirmingTurns = 24, kConfirmingRounds = 3;

// A candidate against a base.
struct Effect {
  std::string name;
  std::vector<std::string> settings;
  double ratio = 1;  // median; below 1 is faster
  Interval interval = {1, 1};
  int turns = 0;
  Advice advice = Advice::none;

  bool is_faster() const { return turns > 0 && interval.high < 1; }
  bool is_slower() const { return turns > 0 && interval.low > 1; }
  bool operator==(const Effect&) const = default;
};

// Of at least one ratio.
Effect effect_of(const std::string& name, const std::vector<std::string>& settings,
                 const std::vector<double>& ratios);

struct SearchResult {
  Candidate winner;                   // no settings: the default
  std::optional<Effect> confirmed;    // of the best candidate against the default, in turns of their own
  std::vector<Effect> tried;          // by their ratios, the fastest first
  std::vector<std::string> same;      // names of candidates that change nothing here
  std::vector<std::string> left_out;  // names of candidates that the budget did not allow
  double spent_seconds = 0;
};

// The winner is the default unless the whole interval of the best candidate lies below 1.
SearchResult find_fastest(const std::vector<Candidate>& candidates, const SearchBudget& budget,
                          const Measure& measure);

// What each setting of the winner does: the ratio of the winner without this setting, against the winner. Above 1 the
// setting makes the step faster. Stops when `seconds` are spent.
std::vector<Effect> explain(const Candidate& winner, const SearchBudget& budget, const Measure& measure);

}  // namespace fleetrun::runtime
