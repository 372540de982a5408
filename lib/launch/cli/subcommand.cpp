#include "launch/cli/subcommand.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::launch {

const Subcommand* subcommand_called(const std::vector<Subcommand>& subcommands, const std::string& name) {
  const auto found = std::find_if(subcommands.begin(), subcommands.end(),
                                  [&](const Subcommand& one) { return one.name == name; });
  return found == subcommands.end() ? nullptr : &*found;
}

std::vector<Flag> flags_of(const Subcommand& subcommand) {
  std::vector<Flag> flags = subcommand.flags == nullptr ? std::vector<Flag>() : subcommand.flags();
  flags.push_back({.names = {"--help", "-h"}, .help = "Show this help"});
  return flags;
}

FoundFlags read_flags(const Subcommand& subcommand, const std::vector<std::string>& words) {
  const std::string hint = fmt::format("fleetrun {} --help", subcommand.name);
  const std::vector<Flag> flags = flags_of(subcommand);
  FoundFlags found =
      subcommand.ends_flags ? read_leading_flags(flags, words) : read_flags(flags, words, hint);
  if (found.rest.size() > subcommand.most_words && !found.has("--help"))
    throw Error(ErrorKind::usage,
                fmt::format("found {}, which is one word too many", found.rest[subcommand.most_words]), hint);
  return found;
}

}  // namespace fleetrun::launch
