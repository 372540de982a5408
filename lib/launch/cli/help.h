// What --help, `fleetrun NAME --help` and --show_config print.
#pragma once
#include <string>
#include <vector>

#include "launch/cli/flag.h"
#include "launch/cli/subcommands.h"

namespace fleetrun::launch {

// The ways in which fleetrun is called, one a line.
const std::vector<std::string>& launch_forms();

// "--gpus IDS", "--show_config[=FORMAT]".
std::string describe_flag(const Option& option);

// The help of a flag with its default and its variable, as far as it has them.
std::string describe_meaning(const Option& option);

std::string launch_help(const std::vector<Option>& table);
std::string subcommand_help(const Subcommand& subcommand);

// The value of each flag and where it comes from; `format` is text or json.
std::string describe_config(const std::vector<Option>& table, const std::string& format);

}  // namespace fleetrun::launch
