#include "launch/supervise/exit_cause.h"

#include <array>
#include <csignal>

#include "base/error/error.h"
#include "base/error/exit_codes.h"

namespace fleetrun::launch {
namespace {

using Report = ExitCause::Report;

constexpr std::optional<int> of_event;
constexpr bool restarts = true, ends = false;

constexpr int code_of(ErrorKind kind) { return static_cast<int>(kind); }
constexpr int code_of_signal(int signal) { return kSignalExitCode + signal; }

constexpr std::array kExitCauses = {
#define EXIT_CAUSE(name, code, restart, report, sentence, meaning) \
  ExitCause{#name, code, restart, Report::report, sentence, meaning},
#include "launch/supervise/exit_causes.def"
#undef EXIT_CAUSE
};

// Whether every {word} of a sentence is one that the report can fill in.
constexpr bool has_known_words(std::string_view sentence) {
  constexpr std::array<std::string_view, 7> kWords = {"rank",    "status", "origin", "program",
                                                      "problem", "signal", "why"};
  for (std::size_t begin = 0; (begin = sentence.find('{', begin)) != std::string_view::npos; ++begin) {
    const std::string_view word = sentence.substr(begin + 1, sentence.find('}', begin) - begin - 1);
    bool known = false;
    for (const std::string_view each : kWords) known = known || each == word;
    if (!known) return false;
  }
  return true;
}

#define EXIT_CAUSE(name, code, restart, report, sentence, meaning) \
  static_assert(has_known_words(sentence),                         \
                "the sentence of " #name " has a placeholder that nobody fills in");
#include "launch/supervise/exit_causes.def"
#undef EXIT_CAUSE

}  // namespace

std::span<const ExitCause> exit_causes() { return kExitCauses; }

std::optional<Cause> cause_called(std::string_view name) {
  for (std::size_t i = 0; i < kExitCauses.size(); ++i)
    if (kExitCauses.at(i).name == name) return static_cast<Cause>(i);
  return std::nullopt;
}

const ExitCause& facts_of(Cause cause) { return kExitCauses.at(static_cast<std::size_t>(cause)); }

bool is_of_all_ranks(Cause cause) {
  return cause == Cause::hung || cause == Cause::timed_out || cause == Cause::early_exit;
}

}  // namespace fleetrun::launch
