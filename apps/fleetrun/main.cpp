// fleetrun: starts and supervises distributed programs.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/system/environment.h"
#include "base/system/file.h"
#include "base/system/standard_descriptors.h"
#include "base/system/standard_output.h"
#include "base/text/suggest.h"
#include "launch/cli/command_line.h"
#include "launch/cli/help.h"
#include "launch/launch.h"
#include "launch/process/signals.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/settle_nodes.h"
#include "subcommands.h"

namespace fleetrun {
namespace {

using launch::Subcommand;
using Words = std::vector<std::string>;

int run_subcommand(const Subcommand& subcommand, const Words& words, const Environment& environment) {
  const launch::FoundFlags found = read_flags(subcommand, words);
  if (!found.has("--help")) return subcommand.run(found, environment);
  print_answer(subcommand_help(subcommand));
  return 0;
}

// "fleetrun benhc" is a program that does not exist, and probably was to be a subcommand.
[[noreturn]] void throw_not_found(const Error& error, const Words& arguments, const std::string& program) {
  Words names;
  for (const Subcommand& one : subcommands()) names.push_back(one.name);
  const auto meant = arguments.front() == program ? closest(program, names) : std::nullopt;
  if (!meant) throw error;
  throw Error(error.kind(), fmt::format("{}; did you mean the subcommand {}?", error.message(), *meant),
              error.hint());
}

int run(launch::CalledAs called_as, const Words& arguments) {
  const Environment environment = Environment::of_this_process();
  if (called_as == launch::CalledAs::fleetrun && !arguments.empty())
    if (const Subcommand* subcommand = subcommand_called(subcommands(), arguments.front()))
      return run_subcommand(*subcommand, {arguments.begin() + 1, arguments.end()}, environment);
  const launch::SchedulerFacts facts = {
      environment, [](const std::string& path) { return read_file(path, launch::kMostListBytes); }};
  std::optional<launch::Allocation> allocation;
  const launch::CommandLine line = launch::parse_launch_options(
      arguments, environment, called_as, subcommands(),
      [&](launch::LaunchOptions& options) { allocation = settle_nodes(options, facts); });
  if (line.answer) {
    print_answer(*line.answer);
    return 0;
  }
  try {
    return launch::launch(line.options, environment, allocation);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::not_found) throw;
    throw_not_found(error, arguments, line.options.program);
  }
}

}  // namespace
}  // namespace fleetrun

int main(int argc, char** argv) {
  fleetrun::open_standard_descriptors();
  fleetrun::launch::reset_inherited_signals();
  try {
    return fleetrun::run(fleetrun::launch::called_as(argc > 0 ? argv[0] : ""),
                         {argv + std::min(argc, 1), argv + argc});
  } catch (const fleetrun::Error& error) {
    std::fputs(error.describe("fleetrun").c_str(), stderr);
    return error.exit_code();
  } catch (const std::exception& error) {
    fleetrun::log_line("fleetrun", std::string("internal error: ") + error.what());
    return static_cast<int>(fleetrun::ErrorKind::internal);
  }
}
