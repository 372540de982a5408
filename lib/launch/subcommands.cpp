#include "launch/subcommands.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error.h"

namespace fleetrun::launch {
namespace {

constexpr std::array kLaterSubcommands = {"bench", "check", "doctor", "logs", "ps", "signal", "stop"};

Option flag(std::vector<std::string> names, std::string help) {
  Option option{.names = std::move(names), .help = std::move(help)};
  option.takes = Option::Takes::nothing;
  return option;
}

Option help_flag() { return flag({"--help", "-h"}, "Show how the subcommand is used"); }

std::vector<Subcommand> make_subcommands() {
  return {
      {"config",
       "[flags] JOB.json [KEY.PATH=VALUE...]",
       "Show what holds for each key of a job and where that comes from",
       {flag({"--json"}, "As JSON"), flag({"--schema"}, "The JSON Schema of job files, for editors"),
        flag({"--keys"}, "All keys with type, default and meaning, as a Markdown table"), help_flag()},
       {}},
      {"export",
       "JOB.json [KEY.PATH=VALUE...] OUT.safetensors",
       "Write the weights that a job starts with",
       {help_flag()},
       {}},
      {"completion",
       "bash|zsh|fish",
       "Print what completes fleetrun's command line in that shell",
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
