#include "launch/options.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "launch/option_file.h"
#include "launch/option_help.h"
#include "launch/option_table.h"
#include "launch/subcommands.h"

namespace fleetrun::launch {
namespace {

// Those that the original lists after "gpu arguments:".
constexpr std::array kModeFlags = {"--ips", "--gpus", "--nproc_per_node"};

std::vector<std::string> texts_of(const Option& option, const FoundFlags& found) {
  std::vector<std::string> texts;
  for (const FoundFlag& flag : found.flags)
    if (flag.option == &option) texts.push_back(flag.text);
  return texts;
}

// The strongest source that names the option sets it.
void set_option(const Option& option, const FoundFlags& found, const Environment& environment,
                const OptionFile& file) {
  Source source = {Origin::flag, option.name()};
  std::vector<std::string> texts = texts_of(option, found);
  const std::string in_environment = option.variable.empty() ? "" : environment.get_or(option.variable, "");
  if (texts.empty() && !in_environment.empty()) {
    source = {Origin::environment, option.variable};
    texts = {in_environment};
  } else if (texts.empty()) {
    source = file.source_of(option);
    texts = file.texts_of(option);
  }
  if (texts.empty()) return;
  if (!option.repeats) texts.erase(texts.begin(), texts.end() - 1);
  for (const std::string& text : texts) option.set(text, source);
}

OptionFile read_file_of_options(const std::vector<Option>& table, const FoundFlags& found,
                                const Environment& environment, const LaunchOptions& options) {
  const auto config = std::find_if(table.begin(), table.end(),
                                   [](const Option& option) { return option.is_called("--config"); });
  set_option(*config, found, environment, OptionFile());
  return options.config.value.empty() ? OptionFile() : read_option_file(options.config.value, table);
}

}  // namespace

CommandLine parse_launch_options(const std::vector<std::string>& arguments, const Environment& environment) {
  refuse_later_subcommand(arguments);
  CommandLine line;
  const std::vector<Option> table = option_table(line.options);
  const FoundFlags found = find_flags(table, arguments);
  if (found.has("--help")) {
    line.answer = launch_help(table);
    return line;
  }
  if (found.has("--version")) {
    line.answer = fmt::format("fleetrun {}\n", FLEETRUN_VERSION);
    return line;
  }
  const OptionFile file = read_file_of_options(table, found, environment, line.options);
  for (const Option& option : table) set_option(option, found, environment, file);
  for (const char* name : kModeFlags)
    if (found.has(name)) line.options.mode_flags.emplace_back(name);
  if (!line.options.show_config.value.empty()) {
    line.answer = describe_config(table, line.options.show_config.value);
    return line;
  }
  if (found.rest.empty())
    throw Error(ErrorKind::usage, "no script, program or job file given", "fleetrun --help shows the forms");
  line.options.program = found.rest.front();
  line.options.arguments.assign(found.rest.begin() + 1, found.rest.end());
  return line;
}

}  // namespace fleetrun::launch
