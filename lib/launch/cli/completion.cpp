#include "launch/cli/completion.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "launch/cli/completion_shells.h"
#include "launch/cli/shell_words.h"
#include "launch/cli/subcommands.h"

namespace fleetrun::launch {

std::vector<std::string> shown_names(const std::vector<Option>& options) {
  std::vector<std::string> names;
  for (const Option& option : options)
    if (option.shown()) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> subcommand_names() {
  std::vector<std::string> names;
  for (const Subcommand& one : subcommands()) names.push_back(one.name);
  return names;
}

std::string with_dashes(const std::string& name) {
  std::string dashed = name;
  if (name.starts_with("--")) std::replace(dashed.begin() + 2, dashed.end(), '_', '-');
  return dashed;
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::string completion(const std::string& shell, const std::vector<Option>& table) {
  if (shell == "bash") return bash_completion(table);
  if (shell == "zsh") return zsh_completion(table);
  if (shell == "fish") return fish_completion(table);
  throw Error(ErrorKind::usage, fmt::format("the shell is \"{}\", must be bash, zsh or fish", shell));
}

}  // namespace fleetrun::launch
