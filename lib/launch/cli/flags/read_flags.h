// The flags among the words of a command line.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/cli/flags/flag.h"

namespace fleetrun::launch {

struct FoundFlag {
  std::string name;     // the first one of the flag
  std::string text;     // its value; "true" for a flag that takes none
  std::string written;  // the name that stands on the command line, where it is last
};

struct FoundFlags {
  std::vector<FoundFlag> flags;   // those of one name in their order; an empty value counts as not given
  std::vector<std::string> rest;  // the other words

  bool has(std::string_view name) const;
  std::optional<std::string> value(std::string_view name) const;  // the last one
  std::vector<std::string> values(std::string_view name) const;
  std::string written(
      std::string_view name) const;  // "--devices" for "--gpus"; `name` where the flag is not given
};

// Reads the flags before the first other word; the rest begins with that word, or after "--". Dashes may stand for
// underscores, and no name may be abbreviated. Throws Error(usage), for an unknown flag with the one that was meant.
FoundFlags read_leading_flags(const std::vector<Flag>& flags, const std::vector<std::string>& words);

// Reads flags and other words in any order up to "--". Every error carries `hint`.
FoundFlags read_flags(const std::vector<Flag>& flags, const std::vector<std::string>& words,
                      const std::string& hint);

}  // namespace fleetrun::launch
