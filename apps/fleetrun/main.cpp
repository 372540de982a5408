// fleetrun: starts and supervises distributed programs.
#include <cstdio>
#include <string>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "commands.h"
#include "launch/launch.h"
#include "launch/options.h"

namespace {

using namespace fleetrun;

int run(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments.front() == "config")
    return run_config_command({arguments.begin() + 1, arguments.end()});
  const Environment environment = Environment::of_this_process();
  const launch::CommandLine line = launch::parse_launch_options(arguments, environment);
  if (line.answer) {
    std::fputs(line.answer->c_str(), stdout);
    return 0;
  }
  return launch::launch(line.options, environment);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const Error& error) {
    std::fputs(error.describe("fleetrun").c_str(), stderr);
    return error.exit_code();
  }
}
