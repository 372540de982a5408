#include "launch/cli/flags/launch_flags.h"

#include <array>
#include <iterator>

#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/cli/flags/flag_rows.h"
#include "launch/cli/flags/node_flags.h"
#include "launch/cli/flags/peer_flags.h"

namespace fleetrun::launch {
namespace {

// Of PaddlePaddle's launcher, for parameter servers.
constexpr std::array kServerFlags = {
    "--servers",   "--workers",  "--heter_workers", "--worker_num", "--server_num", "--heter_worker_num",
    "--http_port", "--trainers", "--trainer_num",   "--gloo_port",  "--with_gloo",  "--heter_devices"};

// Of PaddlePaddle's launcher, for things that fleetrun does not have.
constexpr std::array kPaddleFlags = {"--auto_parallel_config", "--auto_tuner_json", "--npus", "--xpus"};

constexpr const char* kElasticHint =
    "--nnodes=MIN:MAX makes a run elastic, and --max_restart says how often it may start again";

void check_run_mode(const std::string& text, const Source& source) {
  if (text == "collective") return;
  const bool known = text == "ps" || text == "ps-heter" || text == "rpc";
  throw Error(ErrorKind::usage,
              known ? fmt::format("{} is \"{}\": only collective is supported yet", source.name, text)
                    : fmt::format("{} is \"{}\", must be collective", source.name, text));
}

Names<LogLevel> log_levels() {
  Names<LogLevel> names;
  for (const LogLevel level :
       {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error, LogLevel::critical})
    names.emplace_back(show_value(level), level);
  return names;
}

// No setting of a run: neither --show_config nor a file has it.
Flag apart(Flag flag) {
  flag.show = nullptr;
  return flag;
}

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<Flag> worker_flags(LaunchOptions& options) {
  return {
      value(
          options.gpus, as_text,
          {.names = {"--gpus", "--selected_gpus", "--devices"},
           .argument = "IDS",
           .help =
               "GPUs to use, such as 0,1,2,3. Each gets one worker; with --nproc_per_node the workers share them evenly. With "
               "--device=cpu, where no GPU is used, only the number of ids counts: it is the number of workers. By default, all GPUs",
           .variable = "PADDLE_DEVICES",
           .of_node = true}),
      value(options.nproc_per_node, parse_worker_count,
            {.names = {"--nproc_per_node", "-n", "--np", "--num_proc"},
             .argument = "N",
             .help = "Number of workers; the GPUs are split evenly among them. gpu starts one per GPU, cpu "
                     "one per core, and auto one per GPU, or one per core on a host without GPUs",
             .variable = "PADDLE_NPROC_PER_NODE",
             .of_node = true}),
      on_or_off(options.module,
                {.names = {"--module", "-m"}, .help = "Run the program as a Python module, like python -m"}),
      choice(options.device,
             {{"cpu", job::DeviceChoice::cpu},
              {"cuda", job::DeviceChoice::cuda},
              {"auto", job::DeviceChoice::automatic}},
             {.names = {"--device"},
              .argument = "DEVICE",
              .help = "Device of the workers: cpu, cuda, or auto, which takes cuda on a host with GPUs",
              .of_node = true}),
      choice(
          options.bind, {{"cores", Binding::cores}, {"none", Binding::none}},
          {.names = {"--bind"},
           .argument = "WHAT",
           .help =
               "cores gives each rank its own share of the usable cores and prints them; none lets all ranks share all cores",
           .bare = "cores",
           .of_node = true}),
      item(
          options.debug_rank, parse_debug_rank,
          {.names = {"--debug_rank"},
           .argument = "RANK=COMMAND",
           .help =
               "Run one rank under a command, such as 3='gdbserver :2345' or 0='valgrind -q'. The command writes to the rank's log"}),
      item(
          options.nccl, parse_nccl_setting,
          {.names = {"--nccl"},
           .argument = "NAME=VALUE",
           .help =
               "Set an NCCL variable for the workers. It wins over the job's env, which wins over the environment",
           .sets_variables = true}),
      item(
          options.env, parse_variable,
          {.names = {"--env", "-x"},
           .argument = "[RANK:]NAME=VALUE",
           .help =
               "Set a variable for all ranks, or for one rank, such as 1:LR=0.1. NAME alone keeps its current value. Workers always get the whole environment",
           .sets_variables = true}),
      value(options.interactive, parse_rank,
            {.names = {"--interactive"},
             .argument = "RANK",
             .help =
                 "Give the terminal to one rank, for a debugger or input(). Its output goes there and not to "
                 "its log, and the console shows no other rank"}),
      value(options.job_id, parse_name,
            {.names = {"--job_id"},
             .argument = "NAME",
             .help = "Name of the run",
             .variable = "PADDLE_JOB_ID"}),
      {.names = {"--run_mode"},
       .argument = "MODE",
       .help =
           "Only collective, which is also the default: every rank computes, and the ranks exchange their results. "
           "The flag is there for commands of PaddlePaddle's launcher; parameter servers are not supported",
       .variable = "PADDLE_RUN_MODE",
       .choices = {"collective"},
       .set = check_run_mode},
  };
}

std::vector<Flag> address_flags(LaunchOptions& options) {
  return {
      value(options.host, parse_host,
            {.names = {"--host", "--local_addr"},
             .argument = "ADDRESS",
             .help = "Address of this host. The workers get it, and the ranks of a job.json meet there",
             .variable = "POD_IP",
             .of_node = true}),
      value(
          options.start_port, parse_port,
          {.names = {"--start_port"},
           .argument = "PORT",
           .help =
               "First port of the workers; the others follow it. By default, free ports; with several nodes, from 6070 on",
           .variable = "PADDLE_START_PORT",
           .of_node = true}),
      on_or_off(
          options.no_port_hold,
          {.names = {"--no_port_hold"},
           .help =
               "Do not reserve the workers' ports. By default fleetrun keeps each port that it chooses open until a worker listens there, "
               "so that no other program takes it. Use this flag if a worker reports that its address is already in use, because it "
               "listens without SO_REUSEADDR and SO_REUSEPORT",
           .of_node = true}),
  };
}

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<Flag> log_flags(LaunchOptions& options) {
  return {
      value(options.console, parse_ranks,
            {.names = {"--console", "--local_ranks_filter"},
             .argument = "RANKS",
             .help = "Ranks whose output the console shows: 0,3 or 4-7, all, or none",
             .choices = {"all", "none"},
             .of_node = true}),
      value(options.log_prefix, parse_log_prefix,
            {.names = {"--log_prefix"},
             .argument = "TEMPLATE",
             .help = "Text before each line of output, with {rank}, {local_rank}, {role}, {host}, {time} and "
                     "{attempt}. By default it is \"[{rank}] \" when the console shows several ranks",
             .may_be_empty = true,
             .of_node = true}),
      value(options.log_dir, parse_name,
            {.names = {"--log_dir", "--output_filename"},
             .argument = "FOLDER",
             .help = "Folder for workerlog.N, endpoints.log and report.json",
             .variable = "PADDLE_LOG_DIR",
             .completes = Completes::folders,
             .of_node = true}),
      choice(options.log_level, log_levels(),
             {.names = {"--log_level"},
              .argument = "LEVEL",
              .help = "Least severe level that fleetrun logs: DEBUG, INFO, WARNING, ERROR or CRITICAL",
              .variable = "PADDLE_LOG_LEVEL",
              .of_node = true}),
      choice(
          options.banner,
          Names<Banner>{{"paddle", Banner::paddle}, {"short", Banner::brief}, {"none", Banner::none}},
          {.names = {"--banner"},
           .argument = "KIND",
           .help =
               "What to print before the ranks start: paddle (PaddlePaddle's tables), short (one line) or none. By default paddle, and "
               "none with --console=none or a --log_level above INFO",
           .of_node = true}),
      value(
          options.dump_program, as_text,
          {.names = {"--dump_program"},
           .argument = "FOLDER",
           .help =
               "Write the programs of a job.json into FOLDER, as text, as Graphviz graphs and with their kernels. Rank 0 does this",
           .completes = Completes::folders,
           .of_node = true}),
      value(
          options.dump_passes, as_text,
          {.names = {"--dump_passes"},
           .argument = "FOLDER",
           .help =
               "Write the program of a job.json into FOLDER after each pass, as text and as a Graphviz graph. Rank 0 does this",
           .completes = Completes::folders,
           .of_node = true}),
      value(
          options.metrics_port, parse_metrics_port,
          {.names = {"--metrics_port"},
           .argument = "PORT",
           .help =
               "Serve the state of the run at http://127.0.0.1:PORT/metrics, in the text format of Prometheus: ranks, exit "
               "codes and restarts, and steps, loss and speed of a job.json. 0 takes a free port. With ADDRESS:PORT, "
               "everybody who can reach that address can read them. By default, off",
           .of_node = true}),
      value(
          options.metrics_file, as_text,
          {.names = {"--metrics_file"},
           .argument = "FILE",
           .help =
               "Write what --metrics_port serves to FILE every 5 s, for machines on which Prometheus' node_exporter "
               "collects such files. By default, off",
           .completes = Completes::files,
           .of_node = true}),
  };
}

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<Flag> supervision_flags(LaunchOptions& options) {
  return {
      value(options.grace, parse_seconds,
            {.names = {"--grace", "--shutdown_timeout"},
             .argument = "SECONDS",
             .help = "Seconds to wait after SIGTERM before sending SIGKILL",
             .variable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"}),
      value(options.kill_wait, parse_seconds,
            {.names = {"--kill_wait"},
             .argument = "SECONDS",
             .help = "Seconds to wait after SIGKILL for the workers to disappear"}),
      value(
          options.timeout, parse_deadline,
          {.names = {"--timeout"},
           .argument = "SECONDS",
           .help =
               "Stop the run with exit code 124 after this many seconds. The time begins when the ranks start: the wait "
               "for other nodes before that does not count. By default, and with 0, there is no limit"}),
      value(options.max_restart, parse_restarts,
            {.names = {"--max_restart", "--max_restarts"},
             .argument = "N",
             .help = "Number of times to restart all ranks after a failure",
             .variable = "PADDLE_MAX_RESTART"}),
      value(
          options.restart_window, parse_deadline,
          {.names = {"--restart_window"},
           .argument = "SECONDS",
           .help =
               "Count only the restarts of the last SECONDS against --max_restart. By default all restarts of the "
               "run count"}),
      value(
          options.restart_delay, parse_seconds,
          {.names = {"--restart_delay"},
           .argument = "SECONDS",
           .help =
               "Seconds to wait before the first restart. The wait doubles after each attempt without progress, up to 60 s"}),
      value(options.no_restart_on, parse_exit_codes,
            {.names = {"--no_restart_on"},
             .argument = "CODES",
             .help = "Exit codes after which --max_restart starts no other attempt, such as 3,137"}),
      value(
          options.hang_timeout, parse_deadline,
          {.names = {"--hang_timeout"},
           .argument = "SECONDS",
           .help =
               "Seconds after which the run counts as hung if no rank writes output or uses the CPU. fleetrun then "
               "prints what each rank is doing, writes their stacks to the log folder, and stops the run; 0: never. By default, "
               "never for scripts and programs; for a job.json, 5 times the 99th percentile of its step time, at least 30"}),
      value(
          options.log_rule, parse_log_rule,
          {.names = {"--log_rule"},
           .argument = "RULE",
           .help =
               "Count the run as hung if its ranks write no line of a certain kind for some time. RULE is 'REGEX within Ss': with "
               "'loss: within 60s', a line that matches the regular expression loss: must come every 60 seconds. By default, no rule"}),
      value(options.straggler_after, parse_deadline,
            {.names = {"--straggler_after"},
             .argument = "SECONDS",
             .help = "With a job.json, say which rank is slow when it has been slower than the others for "
                     "this many seconds; 0 means never"}),
      value(
          options.early_exit_wait, parse_deadline,
          {.names = {"--early_exit_wait"},
           .argument = "SECONDS",
           .help =
               "Seconds that the other ranks may still run after one rank has ended with code 0; then fleetrun stops them, and the run "
               "fails. By default, and with 0, no limit"}),
      choice(options.cgroup, {{"auto", UseCgroup::automatic}, {"none", UseCgroup::none}},
             {.names = {"--cgroup"},
              .argument = "CHOICE",
              .help = "auto gives the workers their own cgroup where possible; none does not",
              .of_node = true}),
  };
}

std::vector<Flag> look_flags(LaunchOptions& options) {
  return {
      apart(choice(
          options.dry_run, {{"text", "text"}, {"json", "json"}},
          {.names = {"--dry_run"},
           .argument = "FORMAT",
           .help =
               "Print the command line and the variables of each rank, as text for a shell or as json, and start nothing",
           .bare = "text",
           .of_node = true})),
      apart(choice(options.show_config, {{"text", "text"}, {"json", "json"}},
                   {.names = {"--show_config"},
                    .argument = "FORMAT",
                    .help = "Show the value of each flag and where it was set, as text or json",
                    .bare = "text",
                    .of_node = true})),
      value(
          options.config, as_text,
          {.names = {"--config"},
           .argument = "FILE",
           .help =
               "JSON file with values for flags, such as {\"nproc_per_node\": 4, \"log_dir\": \"logs\"}. Flags and variables win over it",
           .variable = "FLEETRUN_CONFIG",
           .completes = Completes::files,
           .of_node = true}),
      question({.names = {"--help", "-h"}, .help = "Show this help"}),
      question({.names = {"--version"}, .help = "Show the version"}),
  };
}

// Flags of PaddlePaddle's launcher that --help does not show.
std::vector<Flag> hidden_flags(LaunchOptions& options) {
  std::vector<Flag> flags = {
      noted(options.notes, kElasticHint, {.names = {"--elastic_level"}, .argument = "N", .choices = {"-1"}}),
      only("ending a run of another launcher is",
           {.names = {"--force"}, .argument = "BOOL", .choices = {"False", "false"}}),
      noted(
          options.notes,
          "fleetrun needs no etcd, because the nodes meet at the first node; --nnodes=MIN:MAX makes a run elastic",
          {.names = {"--elastic_server"}, .argument = "ADDRESS", .variable = "PADDLE_ELASTIC_SERVER"}),
      noted(options.notes, "an elastic run takes in every node on which you start fleetrun",
            {.names = {"--scale"}, .argument = "N", .choices = {"0"}}),
      only("another launcher is", {.names = {"--legacy"}, .argument = "BOOL", .choices = {"False", "false"}}),
      only("appending to the logs of an earlier run is",
           {.names = {"--log_overwrite"}, .argument = "BOOL", .choices = {"True", "true"}}),
      // Has no effect: ranks follow --ips, or the order of arrival.
      only("another order is",
           {.names = {"--sort_ip"}, .argument = "BOOL", .choices = {"True", "true", "False", "false"}}),
      apart(
          value(options.auto_cluster_config, parse_python_bool,
                {.names = {"--auto_cluster_config"}, .argument = "BOOL", .variable = "PADDLE_AUTO_CLUSTER"})),
      // What fleetrun tune and fleetrun eval add to the flags of a run.
      value(options.tune, as_text, {.names = {"--tune"}, .argument = "REQUEST"}),
      value(options.eval, as_text, {.names = {"--eval"}, .argument = "FOLDER"}),
      noted(options.notes, "fleetrun writes no log of the GPUs; nvidia-smi --query-gpu does",
            {.names = {"--enable_gpu_log"}, .argument = "BOOL", .choices = {"False", "false", "0"}}),
  };
  for (const char* name : kServerFlags)
    flags.push_back(
        refused("parameter-server training is not supported yet", {.names = {name}, .argument = "VALUE"}));
  for (const char* name : kPaddleFlags)
    flags.push_back(refused("not supported by this build", {.names = {name}, .argument = "VALUE"}));
  for (Flag& flag : flags) flag.help.clear();
  return flags;
}

}  // namespace

std::vector<Flag> launch_flags(LaunchOptions& options) {
  std::vector<Flag> table;
  const auto add = [&](std::vector<Flag> flags) {
    std::move(flags.begin(), flags.end(), std::back_inserter(table));
  };
  add(in_section("Workers and devices", worker_flags(options)));
  add(in_section("Several nodes", node_flags(options)));
  add(in_section("Addresses and ports", address_flags(options)));
  add(in_section("Logs and console", log_flags(options)));
  add(in_section("Supervision", supervision_flags(options)));
  add(in_section("Looking without starting", look_flags(options)));
  add(peer_flags(options));
  add(hidden_flags(options));
  return table;
}

}  // namespace fleetrun::launch
