#include "launch/console/console_plan.h"

#include <algorithm>

namespace fleetrun::launch {
namespace {

// --redirects and --tee are about all ranks, as torchrun shows all.
std::vector<int> ranks_to_show(const LaunchOptions& options, int local_size) {
  const bool by_stream =
      options.redirects.origin != Origin::fallback || options.tee.origin != Origin::fallback;
  if (by_stream && options.console.origin == Origin::fallback)
    return RankSet{.text = "all", .all = true, .ranges = {}}.below(local_size, "");
  const std::string source = options.console.source.empty() ? "--console" : options.console.source;
  return options.console.value.below(local_size, source);
}

// One stream of one rank: --tee wins over --redirects.
enum class Fate { plain, tagged, hidden };

Fate fate_of(int stream, int redirected, int teed) {
  if ((teed & stream) != 0) return Fate::tagged;
  return (redirected & stream) != 0 ? Fate::hidden : Fate::plain;
}

void show(int rank, LogStream stream, Fate fate, std::vector<ShownLog>& logs) {
  if (fate != Fate::hidden) logs.push_back({rank, stream, fate == Fate::tagged});
}

// Nothing is mixed into what an interactive rank writes to the terminal.
ConsolePlan plan_of(const LaunchOptions& options, int local_size, const std::vector<int>& shown) {
  ConsolePlan plan;
  for (int rank = 0; rank < local_size; ++rank) {
    const int redirected = options.redirects.value.of(rank);
    const int teed = options.tee.value.of(rank);
    const Fate out = fate_of(kOut, redirected, teed), err = fate_of(kErr, redirected, teed);
    const int named = redirected | teed;
    const bool as_torchrun = options.called_as == CalledAs::torchrun;  // stderr stays stderr
    const bool has_answer =
        !options.eval.value.empty();  // it shows what ranks say to people, without their log lines
    const bool apart = as_torchrun || has_answer || out != err || named == kOut || named == kErr;
    plan.apart.push_back(apart);
    if (options.interactive.value || std::find(shown.begin(), shown.end(), rank) == shown.end()) continue;
    show(rank, apart ? LogStream::out : LogStream::both, out, plan.logs);
    if (apart && !(has_answer && err == Fate::plain)) show(rank, LogStream::err, err, plan.logs);
  }
  return plan;
}

}  // namespace

bool ConsolePlan::shows_many() const {
  if (!elsewhere.empty()) return elsewhere.size() > 1 || !logs.empty();
  return std::any_of(logs.begin(), logs.end(),
                     [&](const ShownLog& log) { return log.local_rank != logs.front().local_rank; });
}

ConsolePlan plan_console(const LaunchOptions& options, int local_size) {
  return plan_of(options, local_size, ranks_to_show(options, local_size));
}

ConsolePlan plan_console(const LaunchOptions& options, const ConsoleNode& node) {
  const Setting<RankSet>& console = options.console;
  if (console.origin == Origin::fallback || options.called_as == CalledAs::torchrun)
    return plan_console(options, node.local_size);
  if (node.world && !node.elastic) console.value.below(*node.world, console.source);
  const bool is_first = node.first == 0;
  std::vector<int> here, elsewhere;
  for (int rank = 0; rank < node.world.value_or(node.first + node.local_size); ++rank) {
    const bool is_here = rank >= node.first && rank < node.first + node.local_size;
    if (!console.value.contains(rank) || (!is_here && !is_first)) continue;
    (is_here ? here : elsewhere).push_back(is_here ? rank - node.first : rank);
  }
  ConsolePlan plan = plan_of(options, node.local_size, here);
  if (!options.interactive.value) plan.elsewhere = elsewhere;
  return plan;
}

}  // namespace fleetrun::launch
