#include "launch/cli/flags/redact_command.h"

#include <algorithm>

#include "base/json/redact_variables.h"
#include "base/text/redact.h"
#include "launch/cli/flags/launch_flags.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLetter = 2;  // characters of "-x"

bool sets_variables(const std::vector<Flag>& table, const std::string& name) {
  const Flag* const flag = flag_called(table, name);
  return flag != nullptr && flag->sets_variables;
}

// "--env=NAME=VALUE" and "-xNAME=VALUE": the characters before the setting; 0 for any other word.
std::size_t before_setting(const std::vector<Flag>& table, const std::string& word) {
  if (!looks_like_a_flag(word)) return 0;
  if (const std::size_t equals = word.find('='); sets_variables(table, word.substr(0, equals)))
    return std::min(equals, word.size() - 1) + 1;
  return !word.starts_with("--") && sets_variables(table, word.substr(0, kLetter)) ? kLetter : 0;
}

}  // namespace

bool sets_variables(const std::string& flag) {
  LaunchOptions options;
  return sets_variables(launch_flags(options), flag);
}

std::vector<std::string> redact_command(std::vector<std::string> words) {
  LaunchOptions options;
  const std::vector<Flag> table = launch_flags(options);
  bool is_setting = false;
  for (std::string& word : words) {
    const std::size_t before = is_setting ? 0 : before_setting(table, word);
    if (is_setting || before > 0) word = word.substr(0, before) + redact_setting(word.substr(before));
    is_setting = !is_setting && before > 0 && before == word.size();
  }
  return redact_variables(std::move(words));
}

}  // namespace fleetrun::launch
