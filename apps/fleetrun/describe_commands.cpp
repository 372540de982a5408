// The subcommands that describe the command line itself: completion and man.
#include "base/error.h"
#include "base/standard_output.h"
#include "commands.h"
#include "launch/cli/completion.h"
#include "launch/cli/help.h"
#include "launch/cli/launch_flags.h"
#include "launch/cli/man_page.h"
#include "launch/cli/subcommands.h"

namespace fleetrun {
namespace {

std::string complete(const std::vector<std::string>& arguments) {
  const launch::Subcommand& self = launch::subcommand("completion");
  const launch::FoundFlags found = find_flags(self, arguments);
  if (found.has("--help")) return subcommand_help(self);
  if (found.rest.size() != 1)
    throw Error(ErrorKind::usage, "wanted the name of one shell: bash, zsh or fish",
                "fleetrun completion --help");
  launch::LaunchOptions options;
  return launch::completion(found.rest.front(), option_table(options));
}

std::string describe(const std::vector<std::string>& arguments) {
  const launch::Subcommand& self = launch::subcommand("man");
  const launch::FoundFlags found = find_flags(self, arguments);
  if (found.has("--help")) return subcommand_help(self);
  if (!found.rest.empty())
    throw Error(ErrorKind::usage, "found " + found.rest.front() + ", wanted no argument",
                "fleetrun man --help");
  launch::LaunchOptions options;
  return launch::man_page(option_table(options));
}

}  // namespace

int run_completion_command(const std::vector<std::string>& arguments) {
  print_answer(complete(arguments));
  return 0;
}

int run_man_command(const std::vector<std::string>& arguments) {
  print_answer(describe(arguments));
  return 0;
}

}  // namespace fleetrun
