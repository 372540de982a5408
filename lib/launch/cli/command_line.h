// From the words of a command line, the environment and a file to LaunchOptions.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/cli/subcommand.h"

namespace fleetrun::launch {

CalledAs called_as(const std::string& argv0);

struct CommandLine {
  LaunchOptions options;
  std::optional<std::string> answer;  // to --help, --version, --show_config: print it instead of launching
};

// `arguments` are without the program's own name; --help lists the subcommands. A flag wins over the environment, which
// wins over the file of --config, which wins over the default. Throws Error(usage), and Error(config) for a bad file.
CommandLine parse_launch_options(const std::vector<std::string>& arguments, const Environment& environment,
                                 CalledAs called_as = CalledAs::fleetrun,
                                 const std::vector<Subcommand>& subcommands = {},
                                 const std::function<void(LaunchOptions&)>& settle = {});

// The log folder of the run that a subcommand is about: --log_dir, else PADDLE_LOG_DIR, also inside a worker, else
// log_dir in the file that FLEETRUN_CONFIG names, else the default.
std::string find_log_dir(const FoundFlags& found, const Environment& environment);

}  // namespace fleetrun::launch
