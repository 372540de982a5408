#include "words_of_run.h"

#include "launch/cli/flags/launch_flags.h"
#include "launch/cli/flags/launch_options.h"

namespace fleetrun {

std::vector<std::string> words_of_run(const launch::FoundFlags& found, const std::string& program) {
  launch::LaunchOptions options;
  const std::vector<launch::Flag> table = launch::launch_flags(options);
  std::vector<std::string> words;
  for (const launch::FoundFlag& flag : found.flags) {
    const launch::Flag* const row = launch::flag_called(table, flag.name);
    if (row != nullptr) words.push_back(row->takes_value() ? flag.name + "=" + flag.text : flag.name);
  }
  words.emplace_back("--");
  words.insert(words.end(), found.rest.begin(), found.rest.end());
  if (found.rest.empty()) words.push_back(program);
  return words;
}

}  // namespace fleetrun
