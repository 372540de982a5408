// The subcommands of fleetrun, one row each, with their flags: for reading them, help, completion and the man page.
#pragma once
#include <string>
#include <vector>

#include "launch/cli/flag.h"

namespace fleetrun::launch {

struct Subcommand {
  std::string name;
  std::string arguments;  // as in "usage: fleetrun NAME ARGUMENTS"
  std::string summary;
  std::vector<Option> options;
  std::vector<std::string> choices;                          // for its first word
  Option::Completes completes = Option::Completes::nothing;  // its other words
};

const std::vector<Subcommand>& subcommands();
const Subcommand& subcommand(const std::string& name);  // one that exists

// The flags and other words behind the subcommand's name. Throws Error(usage).
FoundFlags find_flags(const Subcommand& subcommand, const std::vector<std::string>& words);

// A subcommand that is planned is not taken for a program. Throws Error(usage).
void refuse_later_subcommand(const std::vector<std::string>& arguments);

}  // namespace fleetrun::launch
