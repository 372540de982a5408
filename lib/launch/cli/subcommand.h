// One subcommand of fleetrun in one row: running it, --help, completion and the man page all read it.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "launch/cli/flags/flag.h"
#include "launch/cli/flags/read_flags.h"

namespace fleetrun::launch {

struct Subcommand {
  std::string name;
  std::string arguments;     // as in "usage: fleetrun NAME ARGUMENTS"
  std::string summary;       // begins with a verb and has no full stop
  std::string details = {};  // more sentences for its --help
  std::vector<Flag> (*flags)() =
      nullptr;  // besides --help; called when they are needed, which is not when a run starts
  std::vector<std::string> choices = {};     // for its first word
  Completes completes = Completes::nothing;  // its words
  std::size_t most_words = 0;                // besides flags
  bool ends_flags =
      false;  // the first word that is not a flag is a program, and the words after it are the program's
  int (*run)(const FoundFlags& found, const Environment& environment) = nullptr;  // returns the exit code
};

constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

// Null when there is none with this name.
const Subcommand* subcommand_called(const std::vector<Subcommand>& subcommands, const std::string& name);

std::vector<Flag> flags_of(const Subcommand& subcommand);  // --help is the last one

// Throws Error(usage) for unknown flags and for too many words.
FoundFlags read_flags(const Subcommand& subcommand, const std::vector<std::string>& words);

}  // namespace fleetrun::launch
