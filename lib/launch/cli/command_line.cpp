#include "launch/cli/launch_options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "launch/cli/completion.h"
#include "launch/cli/config_file.h"
#include "launch/cli/help.h"
#include "launch/cli/launch_flags.h"
#include "launch/cli/subcommands.h"

namespace fleetrun::launch {
namespace {

// Those that the original lists after "gpu arguments:".
constexpr std::array kModeFlags = {"--ips", "--gpus", "--nproc_per_node"};

constexpr auto kTorchrunGrace = std::chrono::seconds(30);

std::vector<std::string> texts_of(const Option& option, const FoundFlags& found) {
  std::vector<std::string> texts;
  for (const FoundFlag& flag : found.flags)
    if (flag.option == &option) texts.push_back(flag.text);
  return texts;
}

// "PET_MAX_RESTARTS" of "--max_restarts": where torchrun looks for a flag that is not given.
std::string torchrun_variable(std::string name) {
  for (char& letter : name) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return "PET_" + name.substr(2);
}

// A launcher gives its workers PADDLE_LOG_DIR and this file in there. Its logs are not ours.
bool is_of_a_launcher_around_us(const std::string& variable, const Environment& environment) {
  return variable == "PADDLE_LOG_DIR" && environment.get_or("PADDLE_BACKUP_ENV_PATH", "")
                                             .starts_with(environment.get_or(variable, "") + "/backup_env.");
}

// The variable that speaks for a flag that was not given, and what it says; nothing when there is none.
std::optional<std::pair<std::string, std::string>> in_environment(const Option& option,
                                                                  const Environment& environment,
                                                                  CalledAs called_as) {
  std::vector<std::string> variables;
  if (!option.variable.empty()) variables.push_back(option.variable);
  if (called_as == CalledAs::torchrun)
    for (const std::string& name : option.names)
      if (name.starts_with("--")) variables.push_back(torchrun_variable(name));
  for (const std::string& variable : variables)
    if (const std::string text = environment.get_or(variable, "");
        !text.empty() && !is_of_a_launcher_around_us(variable, environment)) {
      const bool is_switch = option.takes == Option::Takes::nothing;  // PET_STANDALONE=1
      return std::pair(variable, is_switch ? (text == "0" ? "false" : "true") : text);
    }
  return std::nullopt;
}

// The strongest source that names the option sets it.
void set_option(const Option& option, const FoundFlags& found, const Environment& environment,
                const OptionFile& file, CalledAs called_as) {
  Source source = {Origin::flag, option.name()};
  std::vector<std::string> texts = texts_of(option, found);
  const auto variable = in_environment(option, environment, called_as);
  if (texts.empty() && variable) {
    source = {Origin::environment, variable->first};
    texts = {variable->second};
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
  set_option(*config, found, environment, OptionFile(), options.called_as);
  return options.config.value.empty() ? OptionFile() : read_option_file(options.config.value, table);
}

// What torchrun does without flags: one worker, everything that workers write on the console as it is, nothing
// else there, logs in a folder of their own.
LaunchOptions defaults_of(CalledAs called_as) {
  LaunchOptions options;
  options.called_as = called_as;
  if (called_as == CalledAs::fleetrun) return options;
  options.nproc_per_node.value = 1;
  options.console.value = {.text = "all", .all = true, .ranges = {}};
  options.log_prefix.value = LogPrefix{""};
  options.log_level.value = LogLevel::warning;
  options.log_dir.value = "";
  options.grace.value = kTorchrunGrace;
  return options;
}

// Flags that say something about each other.
void check_together(LaunchOptions& options) {
  if (options.module.value && options.no_python.value && !options.run_path.value)
    throw Error(ErrorKind::usage, "--module and --no_python are both given: a module is run by Python");
  const auto without_use = [&](const std::string& source, const char* why) {
    if (!source.empty()) options.notes.push_back(fmt::format("{} has no effect: {}", source, why));
  };
  if (options.standalone.value)
    for (const std::string& source :
         {options.rdzv_endpoint.source, options.master_addr.source, options.master_port.source})
      without_use(source, "--standalone takes a free port of this host");
  if (options.tee.origin == Origin::fallback)
    without_use(options.tee_prefix.source, "it is for the lines of --tee; --log_prefix is for the others");
}

}  // namespace

CalledAs called_as(const std::string& argv0) {
  const std::string name = argv0.substr(argv0.rfind('/') + 1);
  return name == "torchrun" ? CalledAs::torchrun : CalledAs::fleetrun;
}

CommandLine parse_launch_options(const std::vector<std::string>& arguments, const Environment& environment,
                                 CalledAs called_as) {
  if (called_as == CalledAs::fleetrun) refuse_later_subcommand(arguments);
  CommandLine line{.options = defaults_of(called_as), .answer = {}};
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
  if (const auto shell = found.value("--print_completion")) {
    line.answer = completion(*shell, table);
    return line;
  }
  const OptionFile file = read_file_of_options(table, found, environment, line.options);
  for (const Option& option : table) set_option(option, found, environment, file, called_as);
  check_together(line.options);
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
