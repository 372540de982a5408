#include "launch/options.h"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "launch/option_values.h"

namespace fleetrun::launch {
namespace {

// Takes the text of a value and the flag or variable that it came from.
using Setter = std::function<void(const std::string& text, const std::string& source)>;

struct Flag {
  std::string names;     // "--gpus,--devices": as CLI11 wants them, the first one is the name in messages
  std::string variable;  // of the environment, "" when there is none
  std::string help;      // "" keeps it out of --help
  Setter set;

  std::string name() const { return names.substr(0, names.find(',')); }
};

constexpr std::string_view kDescription =
    "fleetrun [flags] script.py|program [arguments]   starts one worker per device and watches over them\n"
    "fleetrun [flags] job.json [key.path=value ...]   trains what the job file says, without Python\n"
    "fleetrun config [job.json ...]                   shows or checks a job file\n"
    "fleetrun export job.json [key.path=value ...] OUT.safetensors   writes the weights that a job starts "
    "with\n"
    "fleetrun [flags] -- program [arguments]          for a program that is called like a subcommand\n";

constexpr std::array kLaterSubcommands = {"bench", "check", "doctor", "logs", "ps", "signal", "stop"};

// Flags that the original takes for parameter servers.
constexpr std::array kServerFlags = {
    "--servers",   "--workers",  "--heter_workers", "--worker_num", "--server_num", "--heter_worker_num",
    "--http_port", "--trainers", "--trainer_num",   "--gloo_port",  "--with_gloo",  "--heter_devices"};

// Flags of other versions of the original that have no meaning here yet.
constexpr std::array kLaterFlags = {"--auto_cluster_config",
                                    "--auto_parallel_config",
                                    "--auto_tuner_json",
                                    "--backend",
                                    "--elastic_level",
                                    "--elastic_pre_hook",
                                    "--elastic_server",
                                    "--elastic_timeout",
                                    "--enable_gpu_log",
                                    "--enable_rank_mapping",
                                    "--force",
                                    "--legacy",
                                    "--log_level",
                                    "--log_overwrite",
                                    "--np",
                                    "--npus",
                                    "--ranks",
                                    "--scale",
                                    "--sort_ip",
                                    "--xpus"};

// Those that the original lists after "gpu arguments:".
constexpr std::array kModeFlags = {"--ips", "--gpus", "--nproc_per_node"};

template <typename T, typename Parse>
Setter assign(Setting<T>& setting, Parse parse) {
  return [&setting, parse](const std::string& text, const std::string& source) {
    const Origin origin = source.starts_with('-') ? Origin::flag : Origin::environment;
    setting = {parse(source, text), origin, source};
  };
}

std::string as_text(const std::string&, const std::string& text) { return text; }

// A feature of several nodes or of later versions: only the value that means "without it" is taken.
Setter only(std::vector<std::string> allowed, std::string feature) {
  return [allowed = std::move(allowed), feature = std::move(feature)](const std::string& text,
                                                                      const std::string& source) {
    if (std::find(allowed.begin(), allowed.end(), text) == allowed.end())
      throw Error(ErrorKind::usage,
                  fmt::format("{} is \"{}\": {} not supported by this build", source, text, feature));
  };
}

Setter refused(std::string why) {
  return [why = std::move(why)](const std::string& text, const std::string& source) {
    if (!text.empty()) throw Error(ErrorKind::usage, fmt::format("{}: {}", source, why));
  };
}

Setter run_mode() {
  return [](const std::string& text, const std::string& source) {
    if (text == "collective") return;
    const bool known = text == "ps" || text == "ps-heter" || text == "rpc";
    throw Error(ErrorKind::usage,
                known ? fmt::format("{} is \"{}\": only collective is supported yet", source, text)
                      : fmt::format("{} is \"{}\", must be collective", source, text));
  };
}

std::vector<Flag> flags_of(LaunchOptions& options) {
  const auto endpoint = [](const std::string& source, const std::string& text) {
    return with_context(fmt::format("reading {}", source), [&] { return parse_endpoint(text); });
  };
  std::vector<Flag> flags = {
      {"--gpus,--selected_gpus,--devices", "PADDLE_DEVICES",
       "Devices to use, as 0,1,2,3: one worker each; with --device=cpu the ids are worker slots",
       assign(options.gpus, as_text)},
      {"--nproc_per_node", "PADDLE_NPROC_PER_NODE", "Number of workers; GPUs are split evenly over them",
       assign(options.nproc_per_node, parse_count)},
      {"--device", "", "cpu, cuda or auto (default)", assign(options.device, parse_device)},
      {"--ips", "PADDLE_IPS", "Addresses of the nodes: this host's only, several nodes are not supported yet",
       assign(options.ips, as_text)},
      {"--host", "POD_IP", "Address of this host that the workers are told", assign(options.host, as_text)},
      {"--start_port", "PADDLE_START_PORT",
       "First port of the workers, the others follow it (default: free ones)",
       assign(options.start_port, parse_port)},
      {"--master", "", "host:port for MASTER_ADDR and MASTER_PORT, on this host",
       assign(options.master, endpoint)},
      {"--log_dir", "PADDLE_LOG_DIR", "Folder of workerlog.N, endpoints.log and report.json (default: log)",
       assign(options.log_dir, as_text)},
      {"--dump_program", "",
       "Folder to which rank 0 of a job.json writes its programs as text, Graphviz picture and kernels",
       assign(options.dump_program, as_text)},
      {"--job_id", "PADDLE_JOB_ID", "Name of the run (default: default)", assign(options.job_id, as_text)},
      {"--grace", "", "Seconds between SIGTERM and SIGKILL for workers that are stopped (default: 10)",
       assign(options.grace, parse_seconds)},
      {"--timeout", "", "Seconds after which the run is ended with code 124 (default: none)",
       assign(options.timeout, parse_deadline)},
      {"--max_restart", "PADDLE_MAX_RESTART", "Restarts of all ranks after a failure (default: 0)",
       assign(options.max_restart, parse_restarts)},
      {"--restart_delay", "",
       "Seconds before the first restart, doubled while restarts do not help (default: 1)",
       assign(options.restart_delay, parse_seconds)},
      {"--hang_timeout", "",
       "Seconds without output and work of any rank that count as a hang, 0 for never (default: never; for a "
       "job.json max(30 s, 5 times its 99th percentile step))",
       assign(options.hang_timeout, parse_deadline)},
      {"--log_rule", "", "'REGEX within 60s': without a log line that matches for so long the run hangs",
       assign(options.log_rule, parse_log_rule)},
      {"--early_exit_wait", "",
       "Seconds that ranks may run on when one has finished, 0 for ever (default: for ever; 60 for a "
       "job.json)",
       assign(options.early_exit_wait, parse_deadline)},
      {"--cgroup", "", "auto (default) or none: whether the workers get a cgroup of their own",
       assign(options.cgroup, parse_cgroup)},
      {"--run_mode", "PADDLE_RUN_MODE", "collective", run_mode()},
      {"--nnodes", "PADDLE_NNODES", "Number of nodes, 1", only({"1", "1:1"}, "more than one node is")},
      {"--rank", "PADDLE_RANK", "Rank of this node, 0", only({"0", "-1"}, "more than one node is")},
  };
  for (const char* name : kServerFlags)
    flags.push_back({name, "", "", refused("parameter-server training is not supported yet")});
  for (const char* name : kLaterFlags)
    flags.push_back({name, "", "", refused("not supported by this build")});
  return flags;
}

std::unique_ptr<CLI::App> make_app(const std::vector<Flag>& flags) {
  auto app = std::make_unique<CLI::App>(std::string(kDescription), "fleetrun");
  app->set_help_flag("--help,-h", "Show this text");
  app->add_flag_function(
      "--version", [](std::int64_t) {}, "Show the version");
  for (const Flag& flag : flags) {
    auto* option = app->add_option_function<std::string>(
        flag.names, [&flag](const std::string& text) { flag.set(text, flag.name()); }, flag.help);
    option->take_last()->type_name("");
    if (flag.help.empty()) option->group("");
  }
  return app;
}

// The command line cut in two: flags as CLI11 reads them, and the program with what belongs to it.
struct Cut {
  std::vector<std::string> flags;  // "--name=value", names with underscores
  std::vector<std::string> names;  // of the flags
  std::vector<std::string> rest;
};

[[noreturn]] void throw_unknown_flag(const CLI::App& app, const std::string& name) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& long_name : option->get_lnames()) known.push_back("--" + long_name);
  const std::optional<std::string> meant = closest(name, known);
  throw Error(ErrorKind::usage,
              fmt::format("unknown flag {}{}", name, meant ? fmt::format("; did you mean {}?", *meant) : ""),
              "flags of a script or program stand after its name; fleetrun --help lists ours");
}

Cut cut_command_line(const CLI::App& app, const std::vector<std::string>& arguments) {
  Cut cut;
  auto argument = arguments.begin();
  for (; argument != arguments.end() && argument->size() > 1 && argument->front() == '-'; ++argument) {
    if (*argument == "--") {
      ++argument;
      break;
    }
    const auto equals = argument->find('=');
    std::string name = argument->substr(0, equals);
    std::replace(name.begin() + std::min<std::ptrdiff_t>(2, std::ssize(name)), name.end(), '-', '_');
    const CLI::Option* option = app.get_option_no_throw(name);
    if (option == nullptr) throw_unknown_flag(app, argument->substr(0, equals));
    cut.names.push_back(name);
    if (option->get_items_expected_min() == 0) {
      if (equals != std::string::npos) throw Error(ErrorKind::usage, fmt::format("{} takes no value", name));
      cut.flags.push_back(name);
      continue;
    }
    const bool inside = equals != std::string::npos;
    if (!inside && std::next(argument) == arguments.end())
      throw Error(ErrorKind::usage, fmt::format("{} needs a value", name));
    const std::string value = inside ? argument->substr(equals + 1) : *++argument;
    if (!value.empty()) cut.flags.push_back(fmt::format("{}={}", name, value));  // empty: as if not given
  }
  cut.rest.assign(argument, arguments.end());
  return cut;
}

void parse_with(CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants it
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::usage, error.what());
  }
}

void read_environment(const CLI::App& app, const std::vector<Flag>& flags, const Environment& environment) {
  for (const Flag& flag : flags) {
    if (flag.variable.empty() || app.get_option(flag.name())->count() != 0) continue;
    const std::string text = environment.get_or(flag.variable, "");
    if (!text.empty()) flag.set(text, flag.variable);
  }
}

void refuse_later_subcommand(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return;
  const auto found = std::find(kLaterSubcommands.begin(), kLaterSubcommands.end(), arguments.front());
  if (found == kLaterSubcommands.end()) return;
  throw Error(ErrorKind::usage, fmt::format("the subcommand {} is not supported by this build", *found),
              fmt::format("fleetrun -- {} runs the program of that name", *found));
}

}  // namespace

CommandLine parse_launch_options(const std::vector<std::string>& arguments, const Environment& environment) {
  refuse_later_subcommand(arguments);
  CommandLine line;
  const std::vector<Flag> flags = flags_of(line.options);
  const auto app = make_app(flags);
  const Cut cut = cut_command_line(*app, arguments);
  const auto given = [&](std::string_view name) {
    return std::find(cut.names.begin(), cut.names.end(), name) != cut.names.end();
  };
  if (given("--help") || given("-h")) {
    line.answer = app->help();
    return line;
  }
  if (given("--version")) {
    line.answer = fmt::format("fleetrun {}\n", FLEETRUN_VERSION);
    return line;
  }
  parse_with(*app, cut.flags);
  read_environment(*app, flags, environment);
  for (const char* name : kModeFlags)
    if (app->get_option(name)->count() != 0) line.options.mode_flags.emplace_back(name);
  if (cut.rest.empty())
    throw Error(ErrorKind::usage, "no script, program or job file given", "fleetrun --help shows the forms");
  line.options.program = cut.rest.front();
  line.options.arguments.assign(cut.rest.begin() + 1, cut.rest.end());
  return line;
}

}  // namespace fleetrun::launch
