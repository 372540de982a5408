#include <optional>

#include "commands.h"
#include "launch/cli/command_line.h"
#include "launch/examine.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/settle_nodes.h"
#include "words_of_run.h"

namespace fleetrun {
namespace {

// Those that start the doctor on another node. Only the first node prints the table.
std::vector<std::string> words_of_agent(const FoundFlags& found) {
  std::vector<std::string> words = words_of_run(found, "none");
  if (found.rest.empty()) words.resize(words.size() - 2);
  words.insert(words.begin(), kDoctorName);
  return words;
}

int examine(const FoundFlags& found, const Environment& environment, const launch::Agent* agent) {
  const launch::SchedulerFacts facts = {environment, launch::read_node_list};
  std::optional<launch::Allocation> allocation;
  launch::LaunchOptions options =
      launch::parse_launch_options(words_of_run(found, "none"), environment, launch::CalledAs::fleetrun, {},
                                   [&](launch::LaunchOptions& some) {
                                     allocation =
                                         agent != nullptr ? agent->settle(some) : settle_nodes(some, facts);
                                   })
          .options;
  if (found.rest.empty()) options.program.clear();
  return launch::examine(options, environment, allocation, words_of_agent(found),
                         found.has("--json") ? launch::DoctorOutput::json : launch::DoctorOutput::table);
}

}  // namespace

int run_doctor_command(const FoundFlags& found, const Environment& environment) {
  return examine(found, environment, nullptr);
}

int run_doctor_agent(const FoundFlags& found, const Environment& environment, const launch::Agent& agent) {
  return examine(found, environment, &agent);
}

}  // namespace fleetrun
