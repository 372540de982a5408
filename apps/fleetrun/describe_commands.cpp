// The subcommands that describe the command line itself: completion and man.
#include "base/error/error.h"
#include "base/system/standard_output.h"
#include "commands.h"
#include "launch/cli/completion.h"
#include "launch/cli/flags/launch_flags.h"
#include "launch/cli/man_page.h"
#include "subcommands.h"

namespace fleetrun {

int run_completion_command(const FoundFlags& found, const Environment&) {
  launch::LaunchOptions options;
  if (found.has("--offers")) {
    print_answer(to_lines(complete(launch_flags(options), subcommands(), found.rest)));
    return 0;
  }
  if (found.rest.size() != 1)
    throw Error(ErrorKind::usage, "wanted the name of one shell: bash, zsh or fish",
                "fleetrun completion --help");
  print_answer(launch::completion_script(found.rest.front()));
  return 0;
}

int run_man_command(const FoundFlags&, const Environment&) {
  launch::LaunchOptions options;
  print_answer(man_page(launch_flags(options), subcommands()));
  return 0;
}

}  // namespace fleetrun
