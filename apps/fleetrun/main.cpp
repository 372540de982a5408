// fleetrun: starts and supervises distributed programs.
#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/library_error.h"
#include "base/system/colours.h"
#include "base/system/environment.h"
#include "base/system/standard_descriptors.h"
#include "base/system/standard_output.h"
#include "base/text/suggest.h"
#include "commands.h"
#include "launch/cli/command_line.h"
#include "launch/cli/help.h"
#include "launch/launch.h"
#include "launch/process/signals.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/settle_nodes.h"
#include "launch/starters/agent.h"
#include "subcommands.h"

namespace fleetrun {
namespace {

using launch::Subcommand;
using Words = std::vector<std::string>;

// Agents run only the doctor.
int run_subcommand(const Subcommand& subcommand, const Words& words, const Environment& environment,
                   const launch::Agent* agent) {
  const launch::FoundFlags found = read_flags(subcommand, words);
  if (agent != nullptr) return run_doctor_agent(found, environment, *agent);
  if (!found.has("--help")) return subcommand.run(found, environment);
  print_answer(subcommand_help(subcommand));
  return 0;
}

// What other programs call our subcommands.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kOtherNames = {{
    {"evaluate", "eval"},
    {"evaluation", "eval"},
    {"test", "eval"},
    {"infer", "predict"},
    {"inference", "predict"},
    {"benchmark", "bench"},
    {"status", "ps"},
    {"list", "ps"},
    {"kill", "stop"},
    {"tail", "logs"},
    {"check", "doctor"},
}};

std::optional<std::string> meant_subcommand(const std::string& word) {
  Words names;
  for (const Subcommand& one : subcommands()) names.push_back(one.name);
  for (const auto& [other, name] : kOtherNames)
    if (word == other && std::find(names.begin(), names.end(), name) != names.end()) return std::string(name);
  return closest(word, names);
}

// "fleetrun --nproc_per_node=2 tune job.json", but not "fleetrun -- tune".
bool is_late_subcommand(const Words& arguments, const std::string& program) {
  const auto word = std::find(arguments.begin(), arguments.end(), program);
  return word != arguments.begin() && word != arguments.end() && *(word - 1) != "--" &&
         subcommand_called(subcommands(), program) != nullptr;
}

// "fleetrun benhc" is a program that does not exist, and probably was to be a subcommand.
[[noreturn]] void throw_not_found(const Error& error, const Words& arguments, const std::string& program) {
  if (arguments.front() == program && program == "train")
    throw Error(error.kind(), error.message(), "training needs no subcommand: fleetrun job.json");
  if (is_late_subcommand(arguments, program))
    throw Error(error.kind(), error.message(),
                fmt::format("the subcommand {0} comes first, then its flags: fleetrun {0} ...", program));
  const auto meant = arguments.front() == program ? meant_subcommand(program) : std::nullopt;
  if (!meant) throw error;
  throw Error(error.kind(), fmt::format("{}; did you mean the subcommand {}?", error.message(), *meant),
              error.hint());
}

// `agent`: this fleetrun was started by the one on the first node. Null: by the user.
int run(launch::CalledAs called_as, const Words& arguments, const launch::Agent* agent = nullptr) {
  const Environment environment = Environment::of_this_process();
  if (called_as == launch::CalledAs::fleetrun && !arguments.empty())
    if (const Subcommand* subcommand = subcommand_called(subcommands(), arguments.front()))
      return run_subcommand(*subcommand, {arguments.begin() + 1, arguments.end()}, environment, agent);
  const launch::SchedulerFacts facts = {environment, launch::read_node_list};
  std::optional<launch::Allocation> allocation;
  const launch::CommandLine line = launch::parse_launch_options(
      arguments, environment, called_as, subcommands(), [&](launch::LaunchOptions& options) {
        allocation = agent != nullptr ? agent->settle(options) : settle_nodes(options, facts);
      });
  if (line.answer) {
    print_answer(*line.answer);
    return 0;
  }
  try {
    return launch::launch(line.options, environment, allocation, arguments);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::not_found) throw;
    throw_not_found(error, arguments, line.options.program);
  }
}

int report(const Error& error) {
  print_problem(error);
  return error.exit_code();
}

// What `work` returns, or the exit code of the error that it throws, which is printed.
template <typename Work>
int code_of(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    return report(error);
  } catch (const std::exception& thrown) {
    return report(error_of_library(thrown));
  }
}

int run_agent(const std::string& word, const Words& arguments) {
  const launch::Agent agent(word);
  if (agent.is_first()) return 0;
  const int code = code_of([&] {
    agent.enter();
    return run(agent.called_as(), arguments, &agent);
  });
  agent.tell_end(code);
  return code;
}

int run_words(const std::string& name, const Words& words) {
  if (!words.empty() && launch::is_agent_word(words.front()))
    return run_agent(words.front(), {words.begin() + 1, words.end()});
  return run(launch::called_as(name), words);
}

}  // namespace
}  // namespace fleetrun

int main(int argc, char** argv) {
  fleetrun::open_standard_descriptors();
  fleetrun::launch::reset_inherited_signals();
  return fleetrun::code_of([&] {
    return fleetrun::run_words(argc > 0 ? argv[0] : "", {argv + std::min(argc, 1), argv + argc});
  });
}
