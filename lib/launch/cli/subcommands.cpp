#include "launch/cli/subcommands.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "launch/cli/bench_table.h"

namespace fleetrun::launch {
namespace {

constexpr std::array kLaterSubcommands = {"check", "doctor"};

Option flag(std::vector<std::string> names, std::string help) {
  Option option{.names = std::move(names), .help = std::move(help)};
  option.takes = Option::Takes::nothing;
  return option;
}

Option with_value(std::vector<std::string> names, std::string argument, std::string help) {
  return {.names = std::move(names), .argument = std::move(argument), .help = std::move(help)};
}

Option with_choices(std::vector<std::string> names, std::vector<std::string> choices, std::string help) {
  Option option = with_value(std::move(names), fmt::format("{}", fmt::join(choices, "|")), std::move(help));
  option.choices = std::move(choices);
  return option;
}

Option log_dir_flag() {
  Option option = with_value({"--log_dir"}, "FOLDER", "Log folder of the run, log without it");
  option.variable = "PADDLE_LOG_DIR";
  option.completes = Option::Completes::folders;
  return option;
}

Option rank_flag(std::string help) { return with_value({"--rank"}, "RANKS", std::move(help)); }

Option help_flag() { return flag({"--help", "-h"}, "Show how the subcommand is used"); }

std::vector<Subcommand> make_subcommands() {
  return {
      {"config",
       "[flags] JOB.json [KEY.PATH=VALUE...]",
       "Show each job key's effective value and where it was set",
       {flag({"--json"}, "As JSON"), flag({"--schema"}, "The JSON Schema of job files, for editors"),
        flag({"--keys"}, "All keys with type, default and meaning, as a Markdown table"), help_flag()},
       {},
       Option::Completes::files},
      {"export",
       "JOB.json [KEY.PATH=VALUE...] OUT.safetensors",
       "Write the weights that a job starts with",
       {help_flag()},
       {},
       Option::Completes::files},
      {"bench",
       "all_reduce [flags]",
       "Measure how fast ranks of this host sum, as nccl-tests does, and verify the sums",
       {with_value({"--sizes"}, "SIZES",
                   "Bytes: 8,4K,1M, or 8-128M for all from the first to the last, each twice the one before"),
        with_value({"--nproc_per_node"}, "N", "Ranks, 2 without it"),
        with_choices({"--backend"}, bench_backend_names(),
                     "How the ranks reach each other; in groups first, whose parts choose as "
                     "FLEETRUN_COMM_BACKEND says"),
        with_value({"--group_size"}, "N", "Ranks of a group of a hierarchical backend, 2 without it"),
        with_choices({"--dtype"}, {"f32", "f16", "bf16", "i32", "i64"},
                     "Type of the elements, f32 without it"),
        with_value({"--iters"}, "N",
                   "Sums of each size; without it as many as a third of a second takes, 20 to 2000"),
        flag({"--json"}, "As JSON, with median, 90th percentile and least time"), help_flag()},
       {"all_reduce"}},
      {"logs",
       "[flags]",
       "Show the logs of a run, during it or afterwards",
       {flag({"--follow", "-f"}, "Keep showing new lines until the run is over"),
        rank_flag("Of these ranks only: 0,3 or 4-7; without it of all"),
        with_value({"--since"}, "TIME",
                   "Only what was written since then: 30s, 10m, 2h or 1d ago, or 14:30[:00] today"),
        with_value({"--grep"}, "REGEX", "Only lines that match"),
        with_value({"--log_prefix"}, "TEMPLATE", "In front of each line, as for a run"), log_dir_flag(),
        help_flag()},
       {}},
      {"ps",
       "[flags]",
       "Show the ranks of a run: process, state, CPU time, memory, and when they last wrote to their logs",
       {flag({"--json"}, "As JSON"), log_dir_flag(), help_flag()},
       {}},
      {"stop",
       "[flags]",
       "Stop a run as SIGTERM to fleetrun would, and wait for its end",
       {flag({"--now"}, "Kill the ranks at once, without the grace period"), log_dir_flag(), help_flag()},
       {}},
      {"signal",
       "SIGNAL [flags]",
       "Send a signal (USR1, HUP, 10, ...) to the ranks of a run",
       {rank_flag("To these ranks only"), log_dir_flag(), help_flag()},
       {"HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "KILL", "STOP", "CONT"}},
      {"completion",
       "bash|zsh|fish",
       "Print the completion script for that shell",
       {help_flag()},
       {"bash", "zsh", "fish"}},
      {"man", "", "Print the manual page", {help_flag()}, {}},
  };
}

}  // namespace

const std::vector<Subcommand>& subcommands() {
  static const std::vector<Subcommand> all = make_subcommands();
  return all;
}

const Subcommand& subcommand(const std::string& name) {
  const auto& all = subcommands();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Subcommand& one) { return one.name == name; });
  if (found == all.end()) throw std::out_of_range(name);
  return *found;
}

FoundFlags find_flags(const Subcommand& subcommand, const std::vector<std::string>& words) {
  return find_all_flags(subcommand.options, words, fmt::format("fleetrun {} --help", subcommand.name));
}

void refuse_later_subcommand(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return;
  const auto found = std::find(kLaterSubcommands.begin(), kLaterSubcommands.end(), arguments.front());
  if (found == kLaterSubcommands.end()) return;
  throw Error(ErrorKind::usage, fmt::format("the subcommand {} is not supported by this build", *found),
              fmt::format("fleetrun -- {} runs the program of that name", *found));
}

}  // namespace fleetrun::launch
