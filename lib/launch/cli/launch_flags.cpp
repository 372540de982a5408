#include "launch/cli/launch_flags.h"

#include <array>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "launch/cli/flag_rows.h"
#include "launch/cli/peer_flags.h"

namespace fleetrun::launch {
namespace {

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
constexpr std::array kLaterFlags = {"--auto_parallel_config",
                                    "--auto_tuner_json",
                                    "--backend",
                                    "--elastic_pre_hook",
                                    "--elastic_server",
                                    "--enable_rank_mapping",
                                    "--npus",
                                    "--ranks",
                                    "--scale",
                                    "--xpus"};

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

Endpoint as_endpoint(const std::string& source, const std::string& text) {
  return with_context(fmt::format("reading {}", source), [&] { return parse_endpoint(text); });
}

std::vector<Option> worker_options(LaunchOptions& options) {
  return {
      value("--gpus,--selected_gpus,--devices", "IDS", "PADDLE_DEVICES", options.gpus, as_text,
            "Devices to use, as 0,1,2,3: one worker each; with --device=cpu the ids are worker slots"),
      value(
          "--nproc_per_node,-n,--np,--num_proc", "N", "PADDLE_NPROC_PER_NODE", options.nproc_per_node,
          parse_worker_count,
          "Number of workers, over which GPUs are split evenly; gpu or cpu: as many as this host has GPUs or "
          "cores; auto: GPUs, else cores"),
      on_or_off("--module,-m", options.module, "The program is a Python module, as for python -m"),
      one_of({"auto", "cpu", "cuda"}, value("--device", "DEVICE", "", options.device, parse_device,
                                            "cpu, cuda, or auto: cuda where there is one")),
      one_of({"cores", "none"},
             with_optional_value(
                 value("--bind", "WHAT", "", options.bind, parse_binding,
                       "cores: give each rank its share of the usable cores, and print them; none: "
                       "all ranks share all cores"))),
      list("--debug_rank", "RANK=COMMAND", options.debug_rank, parse_debug_rank,
           "Run the program of one rank under a command: 3='gdbserver :2345', 0='valgrind -q'; the command "
           "writes to the rank's log"),
      list("--nccl", "NAME=VALUE", options.nccl, parse_nccl_setting,
           "An NCCL variable of the workers; it wins over the job's env, which wins over the environment"),
      list("--env,-x", "NAME=VALUE", options.env, parse_variable,
           "A variable of the workers; NAME alone keeps its value. They get our environment in any case"),
      value("--job_id", "NAME", "PADDLE_JOB_ID", options.job_id, as_text, "Name of the run"),
      run_mode(),
      only("--nnodes", {"1", "1:1"}, "PADDLE_NNODES", "more than one node is", "Number of nodes, 1"),
      only("--rank,--node_rank", {"0", "-1"}, "PADDLE_RANK", "more than one node is", "Rank of this node, 0"),
  };
}

std::vector<Option> address_options(LaunchOptions& options) {
  return {
      value("--ips", "ADDRESSES", "PADDLE_IPS", options.ips, as_text,
            "Addresses of the nodes: this host's only, several nodes are not supported yet"),
      value("--host,--local_addr", "ADDRESS", "POD_IP", options.host, as_text,
            "Address of this host that the workers are told, and where the ranks of a job meet"),
      value("--start_port", "PORT", "PADDLE_START_PORT", options.start_port, parse_port,
            "First port of the workers, who use the ports from there on; without it free ports"),
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
      one_of({"all", "none"},
             value("--console,--local_ranks_filter", "RANKS", "", options.console, parse_ranks,
                   "Ranks whose logs are shown as they grow: 0,3 or 4-7, all, or none")),
      value("--log_prefix", "TEMPLATE", "", options.log_prefix, parse_log_prefix,
            "In front of each line that is shown, of {rank}, {local_rank}, {role}, {host}, {time} and "
            "{attempt}; "
            "without it \"[{rank}] \" when several ranks are shown"),
      completing(Option::Completes::folders,
                 value("--log_dir,--output_filename", "FOLDER", "PADDLE_LOG_DIR", options.log_dir, as_text,
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
      value("--metrics_port", "PORT", "", options.metrics_port, parse_metrics_port,
            "Serve metrics to Prometheus at http://127.0.0.1:PORT/metrics, 0: at a free port; ADDRESS:PORT "
            "listens on that address instead, for everybody who can reach it"),
      completing(Option::Completes::files,
                 value("--metrics_file", "FILE", "", options.metrics_file, as_text,
                       "Write the same metrics to a file every 5 s, for node_exporter's textfile collector")),
  };
}

std::vector<Option> supervision_options(LaunchOptions& options) {
  return {
      value("--grace,--shutdown_timeout", "SECONDS", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", options.grace,
            parse_seconds, "Seconds to wait after SIGTERM before sending SIGKILL"),
      value("--kill_wait", "SECONDS", "", options.kill_wait, parse_seconds,
            "Seconds to wait for killed workers to disappear"),
      value("--timeout", "SECONDS", "", options.timeout, parse_deadline,
            "Seconds after which the run is stopped with exit code 124; without it no limit"),
      value("--max_restart,--max_restarts", "N", "PADDLE_MAX_RESTART", options.max_restart, parse_restarts,
            "How often to restart all ranks after a failure"),
      value("--restart_delay", "SECONDS", "", options.restart_delay, parse_seconds,
            "Seconds to wait before the first restart, doubled while restarts do not help"),
      value("--hang_timeout", "SECONDS", "", options.hang_timeout, parse_deadline,
            "Seconds without output or work of any rank that count as a hang, 0: never; without it never, "
            "but for a job.json max(30 s, 5 times its 99th percentile step)"),
      value("--log_rule", "RULE", "", options.log_rule, parse_log_rule,
            "'REGEX within 60s': the run hangs when no log line matches for that long"),
      value("--early_exit_wait", "SECONDS", "", options.early_exit_wait, parse_deadline,
            "Seconds that other ranks may run after the first has finished; without it no limit"),
      one_of({"auto", "none"},
             value("--cgroup", "CHOICE", "", options.cgroup, parse_cgroup,
                   "auto: give the workers a cgroup of their own where possible; none: do not")),
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
                                       "Show each flag's value and where it was set, as text or json"))),
      completing(
          Option::Completes::files,
          value("--config", "FILE", "FLEETRUN_CONFIG", options.config, as_text,
                "JSON file with values for flags: {\"nproc_per_node\": 4, \"log_dir\": \"logs\"}; a flag "
                "or a variable wins over it")),
      question("--help,-h", "Show this text"),
      question("--version", "Show the version"),
  };
}

// --auto_cluster_config, or with PaddlePaddle's words for true and false behind an equals sign.
Option auto_cluster_config(LaunchOptions& options) {
  Option option = value("--auto_cluster_config", "BOOL", "PADDLE_AUTO_CLUSTER", options.auto_cluster_config,
                        parse_python_bool, "");
  option.show = nullptr;
  return option;
}

std::vector<Option> flags_without_effect(LaunchOptions& options) {
  std::vector<Option> rows;
  rows.reserve(kServerFlags.size() + kLaterFlags.size());
  for (const char* name : kServerFlags)
    rows.push_back(refused(name, "parameter-server training is not supported yet"));
  for (const char* name : kLaterFlags) rows.push_back(refused(name, "not supported by this build"));
  // These have one value that says what is so here in any case.
  const auto known = [&](const char* name, std::vector<std::string> values, const char* feature) {
    rows.push_back(only(name, std::move(values), "", feature, ""));
  };
  known("--elastic_level", {"-1"}, "elastic training is");
  known("--force", {"False", "false"}, "elastic training is");
  known("--legacy", {"False", "false"}, "another launcher is");
  known("--log_overwrite", {"True", "true"}, "appending to the logs of an earlier run is");
  known("--sort_ip", {"True", "true", "False", "false"}, "");  // there is one address
  rows.push_back(auto_cluster_config(options));
  rows.push_back(noted("--enable_gpu_log", "BOOL", options.notes,
                       "there is no log of the GPUs; nvidia-smi --query-gpu writes one",
                       {"False", "false", "0"}));
  rows.push_back(
      noted("--elastic_timeout", "SECONDS", options.notes, "elastic training is not supported yet"));
  for (Option& row : rows) row.help.clear();
  return rows;
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
  add(peer_options(options));
  add(flags_without_effect(options));
  return table;
}

}  // namespace fleetrun::launch
