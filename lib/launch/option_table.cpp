#include "launch/option_table.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "launch/option_values.h"

namespace fleetrun::launch {
namespace {

using Setter = std::function<void(const std::string& text, const Source& source)>;

constexpr const char* kWorkers = "Workers and devices";
constexpr const char* kAddresses = "Addresses and ports";
constexpr const char* kLogs = "Logs and console";
constexpr const char* kSupervision = "Supervision";
constexpr const char* kLook = "Looking without starting";

// Flags that the original takes for parameter servers.
constexpr std::array kServerFlags = {
    "--servers",   "--workers",  "--heter_workers", "--worker_num", "--server_num", "--heter_worker_num",
    "--http_port", "--trainers", "--trainer_num",   "--gloo_port",  "--with_gloo",  "--heter_devices"};

// Flags of other versions of the original that have no meaning here yet.
constexpr std::array kLaterFlags = {"--auto_cluster_config",
                                    "--auto_parallel_config",
                                    "--auto_tuner_json",
                                    "--backend",
                                    "--elastic_pre_hook",
                                    "--elastic_server",
                                    "--elastic_timeout",
                                    "--enable_rank_mapping",
                                    "--np",
                                    "--npus",
                                    "--ranks",
                                    "--scale",
                                    "--xpus"};

// Several spellings in one text, as "--gpus,--devices".
std::vector<std::string> names_of(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    names.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return names;
}

// A flag with a value of its own. `parse` takes the source's name and the text, and throws Error(usage).
template <typename T, typename Parse>
Option value(const std::string& names, std::string argument, std::string variable, Setting<T>& setting,
             Parse parse, std::string help) {
  Option option{.names = names_of(names),
                .argument = std::move(argument),
                .variable = std::move(variable),
                .help = std::move(help)};
  option.set = [&setting, parse](const std::string& text, const Source& source) {
    setting = {parse(source.name, text), source.origin, source.name};
  };
  option.show = [&setting] { return show_value(setting.value); };
  option.shown_source = [&setting] { return Source{setting.origin, setting.source}; };
  return option;
}

// A flag that may come several times, each with one item of a list.
template <typename T, typename Parse>
Option list(const std::string& names, std::string argument, Setting<std::vector<T>>& setting, Parse parse,
            std::string help) {
  Option option{.names = names_of(names), .argument = std::move(argument), .help = std::move(help)};
  option.repeats = true;
  option.set = [&setting, parse](const std::string& text, const Source& source) {
    setting.value.push_back(parse(source.name, text));
    setting.origin = source.origin;
    setting.source = source.name;
  };
  option.show = [&setting] { return show_value(setting.value); };
  option.shown_source = [&setting] { return Source{setting.origin, setting.source}; };
  return option;
}

Option on_or_off(const std::string& name, Setting<bool>& setting, std::string help) {
  Option option{.names = {name}, .help = std::move(help)};
  option.takes = Option::Takes::nothing;
  option.set = [&setting](const std::string& text, const Source& source) {
    setting = {parse_switch(source.name, text), source.origin, source.name};
  };
  option.show = [&setting] { return setting.value ? "true" : ""; };
  option.shown_source = [&setting] { return Source{setting.origin, setting.source}; };
  return option;
}

// A feature of several nodes or of later versions: only the values that mean "without it" are taken.
Option only(const std::string& name, std::vector<std::string> allowed, std::string variable,
            const std::string& feature, std::string help) {
  Option option{
      .names = {name}, .argument = "VALUE", .variable = std::move(variable), .help = std::move(help)};
  option.set = [allowed, feature](const std::string& text, const Source& source) {
    if (std::find(allowed.begin(), allowed.end(), text) == allowed.end())
      throw Error(ErrorKind::usage,
                  fmt::format("{} is \"{}\": {} not supported by this build", source.name, text, feature));
  };
  option.choices = std::move(allowed);
  return option;
}

Option refused(const std::string& name, const std::string& why) {
  Option option{.names = {name}, .argument = "VALUE"};
  option.set = [why](const std::string& text, const Source& source) {
    if (!text.empty()) throw Error(ErrorKind::usage, fmt::format("{}: {}", source.name, why));
  };
  return option;
}

// Answered instead of launching; options.cpp looks whether it was given.
Option question(const std::string& names, std::string help) {
  Option option{.names = names_of(names), .help = std::move(help), .section = kLook};
  option.takes = Option::Takes::nothing;
  option.set = [](const std::string&, const Source&) {};
  return option;
}

Option run_mode() {
  Option option{
      .names = {"--run_mode"}, .argument = "MODE", .variable = "PADDLE_RUN_MODE", .help = "collective"};
  option.set = [](const std::string& text, const Source& source) {
    if (text == "collective") return;
    const bool known = text == "ps" || text == "ps-heter" || text == "rpc";
    throw Error(ErrorKind::usage,
                known ? fmt::format("{} is \"{}\": only collective is supported yet", source.name, text)
                      : fmt::format("{} is \"{}\", must be collective", source.name, text));
  };
  option.choices = {"collective"};
  return option;
}

std::string as_text(const std::string&, const std::string& text) { return text; }

Endpoint as_endpoint(const std::string& source, const std::string& text) {
  return with_context(fmt::format("reading {}", source), [&] { return parse_endpoint(text); });
}

std::vector<Option> in_section(const char* section, std::vector<Option> options) {
  for (Option& option : options) option.section = section;
  return options;
}

Option completing(Option::Completes what, Option option) {
  option.completes = what;
  return option;
}

Option one_of(std::vector<std::string> choices, Option option) {
  option.choices = std::move(choices);
  return option;
}

Option with_optional_value(Option option) {
  option.takes = Option::Takes::optional_value;
  return option;
}

std::vector<Option> worker_options(LaunchOptions& options) {
  return {
      value("--gpus,--selected_gpus,--devices", "IDS", "PADDLE_DEVICES", options.gpus, as_text,
            "Devices to use, as 0,1,2,3: one worker each; with --device=cpu the ids are worker slots"),
      value("--nproc_per_node", "N", "PADDLE_NPROC_PER_NODE", options.nproc_per_node, parse_count,
            "Number of workers; GPUs are split evenly over them"),
      one_of({"auto", "cpu", "cuda"}, value("--device", "DEVICE", "", options.device, parse_device,
                                            "cpu, cuda, or auto: cuda where there is one")),
      one_of({"cores", "none"},
             with_optional_value(
                 value("--bind", "WHAT", "", options.bind, parse_binding,
                       "cores: each rank gets its share of the cores that we may use, and they are "
                       "printed; none: all ranks share all"))),
      list("--debug_rank", "RANK=COMMAND", options.debug_rank, parse_debug_rank,
           "Puts a command in front of the program of one rank: 3='gdbserver :2345', 0='valgrind -q'; it has "
           "the "
           "rank's log as output"),
      list("--nccl", "NAME=VALUE", options.nccl, parse_nccl_setting,
           "An NCCL variable of the workers; it wins over the job's env, which wins over the environment"),
      value("--job_id", "NAME", "PADDLE_JOB_ID", options.job_id, as_text, "Name of the run"),
      run_mode(),
      only("--nnodes", {"1", "1:1"}, "PADDLE_NNODES", "more than one node is", "Number of nodes, 1"),
      only("--rank", {"0", "-1"}, "PADDLE_RANK", "more than one node is", "Rank of this node, 0"),
  };
}

std::vector<Option> address_options(LaunchOptions& options) {
  return {
      value("--ips", "ADDRESSES", "PADDLE_IPS", options.ips, as_text,
            "Addresses of the nodes: this host's only, several nodes are not supported yet"),
      value("--host", "ADDRESS", "POD_IP", options.host, as_text,
            "Address of this host that the workers are told, and where the ranks of a job meet"),
      value("--start_port", "PORT", "PADDLE_START_PORT", options.start_port, parse_port,
            "First port of the workers, the others follow it; without it free ones are taken"),
      value("--master", "HOST:PORT", "", options.master, as_endpoint,
            "For MASTER_ADDR and MASTER_PORT, on this host"),
      on_or_off(
          "--no_port_hold", options.no_port_hold,
          "Only choose ports and do not hold them, for programs that listen with neither SO_REUSEADDR nor "
          "SO_REUSEPORT"),
  };
}

std::vector<Option> log_options(LaunchOptions& options) {
  return {
      one_of({"all", "none"}, value("--console", "RANKS", "", options.console, parse_ranks,
                                    "Ranks whose logs are shown as they grow: 0,3 or 4-7, all, or none")),
      value("--log_prefix", "TEMPLATE", "", options.log_prefix, parse_log_prefix,
            "In front of each line that is shown, of {rank}, {local_rank}, {host}, {time} and {attempt}; "
            "without it \"[{rank}] \" when several ranks are shown"),
      completing(Option::Completes::folders,
                 value("--log_dir", "FOLDER", "PADDLE_LOG_DIR", options.log_dir, as_text,
                       "Folder of workerlog.N, endpoints.log and report.json")),
      one_of(
          {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"},
          value("--log_level", "LEVEL", "PADDLE_LOG_LEVEL", options.log_level, parse_log_level,
                "The least important of fleetrun's own log lines: DEBUG, INFO, WARNING, ERROR or CRITICAL")),
      completing(
          Option::Completes::folders,
          value("--dump_program", "FOLDER", "", options.dump_program, as_text,
                "Where rank 0 of a job.json writes its programs as text, Graphviz picture and kernels")),
      completing(Option::Completes::folders,
                 value("--dump_passes", "FOLDER", "", options.dump_passes, as_text,
                       "Where rank 0 of a job.json writes its program after each pass, as text and Graphviz "
                       "picture")),
      value(
          "--metrics_port", "PORT", "", options.metrics_port, parse_metrics_port,
          "Tell Prometheus of the run at http://127.0.0.1:PORT/metrics, 0: at a free port; ADDRESS:PORT for "
          "another address than this host's own, where nobody is asked who they are"),
      completing(
          Option::Completes::files,
          value("--metrics_file", "FILE", "", options.metrics_file, as_text,
                "The same as a file that is replaced every 5 s, for node_exporter's textfile collector")),
  };
}

std::vector<Option> supervision_options(LaunchOptions& options) {
  return {
      value("--grace", "SECONDS", "", options.grace, parse_seconds,
            "Between SIGTERM and SIGKILL for workers that are stopped"),
      value("--kill_wait", "SECONDS", "", options.kill_wait, parse_seconds,
            "How long to wait for workers to be gone after SIGKILL"),
      value("--timeout", "SECONDS", "", options.timeout, parse_deadline,
            "Time after which the run is ended with code 124; without it there is none"),
      value("--max_restart", "N", "PADDLE_MAX_RESTART", options.max_restart, parse_restarts,
            "Restarts of all ranks after a failure"),
      value("--restart_delay", "SECONDS", "", options.restart_delay, parse_seconds,
            "Before the first restart, doubled while restarts do not help"),
      value("--hang_timeout", "SECONDS", "", options.hang_timeout, parse_deadline,
            "Time without output and work of any rank that counts as a hang, 0 for never; without it never, "
            "and "
            "for a job.json max(30 s, 5 times its 99th percentile step)"),
      value("--log_rule", "RULE", "", options.log_rule, parse_log_rule,
            "'REGEX within 60s': without a log line that matches for so long the run hangs"),
      value("--early_exit_wait", "SECONDS", "", options.early_exit_wait, parse_deadline,
            "Time that ranks may run on when one has finished; without it for ever"),
      one_of({"auto", "none"},
             value("--cgroup", "CHOICE", "", options.cgroup, parse_cgroup,
                   "auto or none: whether the workers get a cgroup of their own, where one can "
                   "be made")),
  };
}

std::vector<Option> look_options(LaunchOptions& options) {
  return {
      one_of({"text", "json"},
             with_optional_value(
                 value("--dry_run", "FORMAT", "", options.dry_run, parse_text_or_json,
                       "Print the command line and the variables of each rank, as text for a shell or "
                       "as json, and start nothing"))),
      one_of({"text", "json"},
             with_optional_value(value("--show_config", "FORMAT", "", options.show_config, parse_text_or_json,
                                       "Show what each flag is and where that comes from, as text or json"))),
      completing(
          Option::Completes::files,
          value("--config", "FILE", "FLEETRUN_CONFIG", options.config, as_text,
                "JSON file with values for flags: {\"nproc_per_node\": 4, \"log_dir\": \"logs\"}; a flag "
                "or a variable wins over it")),
      question("--help,-h", "Show this text"),
      question("--version", "Show the version"),
  };
}

std::vector<Option> flags_without_effect() {
  std::vector<Option> options;
  for (const char* name : kServerFlags)
    options.push_back(refused(name, "parameter-server training is not supported yet"));
  for (const char* name : kLaterFlags) options.push_back(refused(name, "not supported by this build"));
  // These have one value that says what is so here in any case.
  const auto known = [&](const char* name, std::vector<std::string> values, const char* feature) {
    options.push_back(only(name, std::move(values), "", feature, ""));
  };
  known("--elastic_level", {"-1"}, "elastic training is");
  known("--enable_gpu_log", {"False", "false"}, "a log of the GPUs is");
  known("--force", {"False", "false"}, "elastic training is");
  known("--legacy", {"False", "false"}, "another launcher is");
  known("--log_overwrite", {"True", "true"}, "appending to the logs of an earlier run is");
  known("--sort_ip", {"True", "true", "False", "false"}, "");  // there is one address
  return options;
}

}  // namespace

std::vector<Option> option_table(LaunchOptions& options) {
  std::vector<Option> table;
  const auto add = [&](std::vector<Option> rows) {
    std::move(rows.begin(), rows.end(), std::back_inserter(table));
  };
  add(in_section(kWorkers, worker_options(options)));
  add(in_section(kAddresses, address_options(options)));
  add(in_section(kLogs, log_options(options)));
  add(in_section(kSupervision, supervision_options(options)));
  add(in_section(kLook, look_options(options)));
  add(flags_without_effect());
  return table;
}

}  // namespace fleetrun::launch
