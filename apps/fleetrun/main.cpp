// fleetrun: starts and supervises distributed programs.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "base/standard_descriptors.h"
#include "base/standard_output.h"
#include "commands.h"
#include "launch/cli/launch_options.h"
#include "launch/launch.h"
#include "launch/process/signals.h"

namespace fleetrun {
namespace {

struct Command {
  const char* name;
  int (*run)(const std::vector<std::string>& arguments);
};
constexpr Command kCommands[] = {
    {"config", run_config_command}, {"export", run_export_command},
    {"bench", run_bench_command},   {"logs", run_logs_command},
    {"ps", run_ps_command},         {"stop", run_stop_command},
    {"signal", run_signal_command}, {"completion", run_completion_command},
    {"man", run_man_command},
};

int run(launch::CalledAs called_as, const std::vector<std::string>& arguments) {
  for (const Command& command : kCommands)
    if (called_as == launch::CalledAs::fleetrun && !arguments.empty() && arguments.front() == command.name)
      return command.run({arguments.begin() + 1, arguments.end()});
  const Environment environment = Environment::of_this_process();
  const launch::CommandLine line = launch::parse_launch_options(arguments, environment, called_as);
  if (line.answer) {
    print_answer(*line.answer);
    return 0;
  }
  return launch::launch(line.options, environment);
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
