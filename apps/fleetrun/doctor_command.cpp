#include <optional>

#include "commands.h"
#include "launch/cli/command_line.h"
#include "launch/cli/launch_flags.h"
#include "launch/launch.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/settle_nodes.h"

namespace fleetrun {
namespace {

// The flags of the run as they were typed, and its program.
std::vector<std::string> words_of_run(const FoundFlags& found) {
  launch::LaunchOptions options;
  const std::vector<launch::Flag> table = launch::launch_flags(options);
  std::vector<std::string> words;
  for (const launch::FoundFlag& flag : found.flags) {
    const launch::Flag* const row = launch::flag_called(table, flag.name);
    if (row != nullptr) words.push_back(row->takes_value() ? flag.name + "=" + flag.text : flag.name);
  }
  words.emplace_back("--");
  words.insert(words.end(), found.rest.begin(), found.rest.end());
  if (found.rest.empty()) words.emplace_back("none");  // a run needs a program, and the doctor does not
  return words;
}

}  // namespace

int run_doctor_command(const FoundFlags& found, const Environment& environment) {
  const launch::SchedulerFacts facts = {environment, launch::read_node_list};
  std::optional<launch::Allocation> allocation;
  launch::LaunchOptions options =
      launch::parse_launch_options(
          words_of_run(found), environment, launch::CalledAs::fleetrun, {},
          [&](launch::LaunchOptions& some) { allocation = settle_nodes(some, facts); })
          .options;
  if (found.rest.empty()) options.program.clear();
  return launch::examine(options, environment, allocation,
                         found.has("--json") ? launch::DoctorOutput::json : launch::DoctorOutput::table);
}

}  // namespace fleetrun
