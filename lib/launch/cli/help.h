// What --help, `fleetrun NAME --help` and --show_config print.
#pragma once
#include <string>
#include <vector>

#include "launch/cli/flags/flag.h"
#include "launch/cli/subcommand.h"

namespace fleetrun::launch {

// The ways in which fleetrun is called, one a line.
const std::vector<std::string>& launch_forms();

// "--gpus IDS", "--show_config[=FORMAT]".
std::string describe_flag(const Flag& flag);

// The help of a flag with its default and its variable, as far as it has them.
std::string describe_meaning(const Flag& flag);

std::string launch_help(const std::vector<Flag>& table, const std::vector<Subcommand>& subcommands);
std::string subcommand_help(const Subcommand& subcommand);

// The value of each flag and where it comes from; `format` is text or json.
std::string describe_config(const std::vector<Flag>& table, const std::string& format);

}  // namespace fleetrun::launch
