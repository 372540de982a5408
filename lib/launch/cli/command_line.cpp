#include "launch/cli/command_line.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/run/version.h"
#include "base/system/endpoint.h"
#include "launch/cli/completion.h"
#include "launch/cli/config_file.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/cli/flags/launch_flags.h"
#include "launch/cli/help.h"

namespace fleetrun::launch {
namespace {

// Those that the original lists after "gpu arguments:".
constexpr std::array kModeFlags = {"--ips", "--gpus", "--nproc_per_node"};

constexpr auto kTorchrunGrace = std::chrono::seconds(30);

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

bool is_inside_a_rank(const Environment& environment) {
  return environment.has("PADDLE_GLOBAL_RANK") || environment.has("TORCHELASTIC_RUN_ID");
}

// PaddleJobs of Kubeflow set it. It counts only if nothing else says where several nodes meet.
void take_inherited_master(const Environment& environment, LaunchOptions& options) {
  const std::string text = environment.get_or("PADDLE_MASTER", "");
  const bool has_meeting = options.master.value || options.master_addr.value || options.rdzv_endpoint.value ||
                           options.ips.origin != Origin::fallback;
  const bool has_nodes = options.nnodes.value && options.nnodes.value->most > 1;
  if (text.empty() || has_meeting || !has_nodes || is_inside_a_rank(environment)) return;
  options.master = {with_context("reading PADDLE_MASTER", [&] { return parse_endpoint(text); }),
                    Origin::environment, "PADDLE_MASTER"};
}

// A launcher tells its ranks about the nodes of its own run, and they inherit what it was told, by variables or by the file of
// $FLEETRUN_CONFIG. A run that a rank starts has nodes of its own: without flags only this one.
bool is_of_the_nodes_around_us(const Flag& flag, const Environment& environment) {
  constexpr std::array kNodeFlags = {"--ips",    "--hosts",       "--hostfile",
                                     "--nnodes", "--node_rank",   "--rdzv_endpoint",
                                     "--master", "--master_addr", "--master_port"};
  return is_inside_a_rank(environment) &&
         std::find(kNodeFlags.begin(), kNodeFlags.end(), flag.name()) != kNodeFlags.end();
}

// The variable that speaks for a flag that was not given, and what it says; nothing when there is none.
std::optional<std::pair<std::string, std::string>> in_environment(const Flag& flag,
                                                                  const Environment& environment,
                                                                  CalledAs called_as) {
  if (is_of_the_nodes_around_us(flag, environment)) return std::nullopt;
  std::vector<std::string> variables;
  if (!flag.variable.empty()) variables.push_back(flag.variable);
  if (called_as == CalledAs::torchrun)
    for (const std::string& name : flag.names)
      if (name.starts_with("--")) variables.push_back(torchrun_variable(name));
  for (const std::string& variable : variables)
    if (const std::string text = environment.get_or(variable, "");
        !text.empty() && !is_of_a_launcher_around_us(variable, environment)) {
      if (flag.takes_value()) return std::pair(variable, text);
      return std::pair(variable, text == "0" ? "false" : "true");  // PET_STANDALONE=1
    }
  return std::nullopt;
}

// The strongest source that names the flag sets it.
void set_flag(const Flag& flag, const FoundFlags& found, const Environment& environment,
              const ConfigFile& file, CalledAs called_as) {
  Source source = {Origin::flag, found.written(flag.name())};
  std::vector<std::string> texts = found.values(flag.name());
  const auto variable = in_environment(flag, environment, called_as);
  if (texts.empty() && variable) {
    source = {Origin::environment, variable->first};
    texts = {variable->second};
  } else if (texts.empty()) {
    source = file.source_of(flag);
    texts = file.texts_of(flag);
  }
  if (texts.empty()) return;
  if (!flag.repeats) texts.erase(texts.begin(), texts.end() - 1);
  for (const std::string& text : texts) flag.set(text, source);
}

// The file of --config or $FLEETRUN_CONFIG; an empty one without it.
ConfigFile find_config_file(const std::vector<Flag>& table, const FoundFlags& found,
                            const Environment& environment, const LaunchOptions& options) {
  set_flag(*flag_called(table, "--config"), found, environment, ConfigFile(), options.called_as);
  if (options.config.value.empty()) return {};
  ConfigFile file = read_config_file(options.config.value, table);
  for (const Flag& flag : table)
    if (options.config.origin == Origin::environment && is_of_the_nodes_around_us(flag, environment))
      file.texts.erase(flag.name());
  return file;
}

// What torchrun does without flags: one worker, everything that workers write on the console as it is, nothing
// else there, logs in a folder of their own.
LaunchOptions defaults_of(CalledAs called_as) {
  LaunchOptions options;
  options.called_as = called_as;
  if (called_as == CalledAs::fleetrun) return options;
  options.nproc_per_node.value = 1;
  options.scheduler.value = "none";  // it starts one node unless flags say more
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
    throw Error(ErrorKind::usage, "--module and --no_python are both given: only Python can run a module");
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

void set_program(LaunchOptions& options, const std::vector<std::string>& words) {
  if (words.empty())
    throw Error(ErrorKind::usage, "no script, program or job file given", "fleetrun --help shows the forms");
  if (words.front().empty())
    throw Error(ErrorKind::usage, "the name of the script, program or job file is empty",
                "a shell variable that is not set, as in fleetrun \"$SCRIPT\", leaves an empty word");
  options.program = words.front();
  options.arguments.assign(words.begin() + 1, words.end());
}

}  // namespace

CalledAs called_as(const std::string& argv0) {
  const std::string name = argv0.substr(argv0.rfind('/') + 1);
  return name == "torchrun" ? CalledAs::torchrun : CalledAs::fleetrun;
}

std::string find_log_dir(const FoundFlags& found, const Environment& environment) {
  if (const auto folder = found.value("--log_dir")) return parse_name("--log_dir", *folder);
  if (std::string folder = environment.get_or("PADDLE_LOG_DIR", ""); !folder.empty()) return folder;
  LaunchOptions options;
  const std::vector<Flag> table = launch_flags(options);
  const ConfigFile file = find_config_file(table, {}, environment, options);
  set_flag(*flag_called(table, "--log_dir"), {}, environment, file, options.called_as);
  return options.log_dir.value;
}

CommandLine parse_launch_options(const std::vector<std::string>& arguments, const Environment& environment,
                                 CalledAs called_as, const std::vector<Subcommand>& subcommands,
                                 const std::function<void(LaunchOptions&)>& settle) {
  CommandLine line{.options = defaults_of(called_as), .answer = {}};
  LaunchOptions& options = line.options;
  const std::vector<Flag> table = launch_flags(options);
  const FoundFlags found = read_leading_flags(table, arguments);
  if (found.has("--help"))
    line.answer = launch_help(table, subcommands);
  else if (found.has("--version"))
    line.answer = fmt::format("fleetrun {}\n", own_version());
  else if (const auto shell = found.value("--print_completion"))
    line.answer = completion_script(*shell);
  if (line.answer) return line;

  const ConfigFile file = find_config_file(table, found, environment, options);
  for (const Flag& flag : table) set_flag(flag, found, environment, file, called_as);
  check_together(options);
  if (settle) settle(options);
  take_inherited_master(environment, options);
  for (const char* name : kModeFlags)
    if (found.has(name)) options.mode_flags.emplace_back(name);
  if (!options.show_config.value.empty())
    line.answer = describe_config(table, options.show_config.value);
  else
    set_program(options, found.rest);
  return line;
}

}  // namespace fleetrun::launch
