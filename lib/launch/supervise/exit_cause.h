// Why a run ends: the table launch/supervise/exit_causes.def as data.
#pragma once
#include <optional>
#include <span>
#include <string_view>

namespace fleetrun::launch {

enum class Cause {
#define EXIT_CAUSE(name, code, restart, report, sentence, meaning) name,
#include "launch/supervise/exit_causes.def"
#undef EXIT_CAUSE
};

struct ExitCause {
  enum class Report { nothing, start, death };  // what follows the sentence on stderr

  std::string_view name;         // in report.json
  std::optional<int> exit_code;  // none: the event that ends the run has its own
  bool restarts = false;         // --max_restart may start another attempt
  Report report = Report::nothing;
  std::string_view sentence;  // with placeholders for the facts of a Verdict
  std::string_view meaning;   // in Markdown
};

std::span<const ExitCause> exit_causes();  // in the order of the enum
const ExitCause& facts_of(Cause cause);
std::optional<Cause> cause_called(std::string_view name);  // as in report.json

// True when the cause is not one rank or node, but all ranks, such as a hang or a timeout. Then fleetrun calls the roll
// before it stops the ranks.
bool is_of_all_ranks(Cause cause);

}  // namespace fleetrun::launch
