#include "launch/cli/flags/peer_flags.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/cli/flags/flag_rows.h"

namespace fleetrun::launch {
namespace {

// Both back ends mean the same, so there is nothing to set.
void check_rdzv_backend(const std::string& text, const Source& source) {
  if (text == "static" || text == "c10d") return;
  const bool known = text == "etcd" || text == "etcd-v2";
  throw Error(ErrorKind::usage,
              known ? fmt::format("{} is \"{}\": fleetrun needs no etcd; the nodes meet at the first node",
                                  source.name, text)
                    : fmt::format("{} is \"{}\", must be static or c10d", source.name, text));
}

Flag numa_binding(LaunchOptions& options) {
  const std::vector<std::string> modes = {"node", "socket", "exclusive", "core-complex"};
  Flag flag{.names = {"--numa_binding"},
            .argument = "MODE",
            .help = "Same as --bind=cores: each rank gets its own cores, close to each other",
            .choices = modes};
  flag.set = [&options, modes](const std::string& text, const Source& source) {
    if (std::find(modes.begin(), modes.end(), text) == modes.end())
      throw bad_value(source.name, text, "node, socket, exclusive or core-complex");
    options.bind = {Binding::cores, source.origin, source.name};
    options.notes.push_back(fmt::format("{}={} is taken as --bind=cores", source.name, text));
  };
  return flag;
}

Flag bind_to(LaunchOptions& options) {
  Flag flag{.names = {"--bind_to"},
            .argument = "WHAT",
            .help = "core means --bind=cores, none means --bind=none",
            .choices = {"core", "none"}};
  flag.set = [&options](const std::string& text, const Source& source) {
    if (text != "core" && text != "none") throw bad_value(source.name, text, "core or none; see --bind");
    options.bind = {text == "core" ? Binding::cores : Binding::none, source.origin, source.name};
  };
  return flag;
}

// What mpirun and horovodrun show of their ranks is what fleetrun shows with --console=all.
Flag tag_output(LaunchOptions& options) {
  Flag flag{.names = {"--tag_output"}, .help = "Same as --console=all, which puts the rank before each line"};
  flag.set = [&options](const std::string&, const Source& source) {
    if (options.console.origin == Origin::fallback)
      options.console = {parse_ranks(source.name, "all"), source.origin, source.name};
  };
  return flag;
}

std::vector<Flag> torchrun_meeting(LaunchOptions& options) {
  return {
      on_or_off(
          options.standalone,
          {.names = {"--standalone"},
           .help =
               "Meet on a free port of this host. It overrides --rdzv_endpoint, --master_addr and --master_port"}),
      {.names = {"--rdzv_backend"},
       .argument = "BACKEND",
       .help = "static or c10d, which mean the same: the nodes meet at the first node",
       .choices = {"static", "c10d"},
       .set = check_rdzv_backend},
      value(
          options.rdzv_endpoint, parse_meeting_point,
          {.names = {"--rdzv_endpoint"},
           .argument = "HOST[:PORT]",
           .help =
               "Address where several nodes meet; the default PORT is 29400. With one node, it sets MASTER_ADDR and MASTER_PORT of the workers; without PORT fleetrun takes a free one",
           .of_node = true}),
      value(options.rdzv_id, as_text,
            {.names = {"--rdzv_id"}, .argument = "NAME", .help = "TORCHELASTIC_RUN_ID of the workers"}),
      noted(options.notes, "--join_timeout says how long nodes wait for each other",
            {.names = {"--rdzv_conf"}, .argument = "SETTINGS"}),
      value(options.master_addr, parse_host,
            {.names = {"--master_addr"},
             .argument = "ADDRESS",
             .help = "Address of the first node. With one node, it sets MASTER_ADDR of the workers",
             .of_node = true}),
      value(
          options.master_port, parse_port,
          {.names = {"--master_port"},
           .argument = "PORT",
           .help =
               "Port where several nodes meet, by default 6069. With one node, it sets MASTER_PORT of the workers"}),
  };
}

std::vector<Flag> torchrun_workers(LaunchOptions& options) {
  return {
      on_or_off(options.no_python,
                {.names = {"--no_python"}, .help = "Run the program directly, whatever its name ends with"}),
      on_or_off(options.run_path,
                {.names = {"--run_path"},
                 .help = "Run the script with Python's runpy.run_path. It wins over --no_python"}),
      value(options.role, parse_role,
            {.names = {"--role"},
             .argument = "NAME",
             .help = "ROLE_NAME of the workers, and {role} in prefixes"}),
      on_or_off(options.virtual_local_rank,
                {.names = {"--virtual_local_rank"},
                 .help = "Let each worker see only its own GPUs, and set LOCAL_RANK to 0"}),
      numa_binding(options),
      noted(options.notes, "every worker is a separate program, so start methods do not apply",
            {.names = {"--start_method"}, .argument = "METHOD"}),
  };
}

std::vector<Flag> torchrun_output(LaunchOptions& options) {
  const std::string grep = "fleetrun logs --grep=REGEX shows such lines, during the run and after it";
  return {
      value(
          options.redirects, parse_streams,
          {.names = {"--redirects", "-r"},
           .argument = "STREAMS",
           .help =
               "Streams that only the log gets: 0 for none, 1 for stdout, 2 for stderr, 3 for both, or by local rank as 0:1,1:2",
           .of_node = true}),
      value(options.tee, parse_streams,
            {.names = {"--tee", "-t"},
             .argument = "STREAMS",
             .help = "Streams that the console shows with a prefix, written as for --redirects",
             .of_node = true}),
      value(
          options.tee_prefix, parse_torch_prefix,
          {.names = {"--log_line_prefix_template"},
           .argument = "TEMPLATE",
           .help =
               "Prefix of the lines that --tee shows, with ${role_name}, ${local_rank}, ${rank} and ${hostname}",
           .variable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
           .of_node = true}),
      noted(options.notes, grep, {.names = {"--duplicate_stdout_filters"}, .argument = "TEXTS"}),
      noted(options.notes, grep, {.names = {"--duplicate_stderr_filters"}, .argument = "TEXTS"}),
      refused("fleetrun loads no Python class for its logs; use --log_dir, --console and --log_prefix",
              {.names = {"--logs_specs"},
               .argument = "NAME",
               .help = "Refused: use --log_dir, --console and --log_prefix"}),
      noted(options.notes, "log/report.json says what happened, and --metrics_port serves metrics",
            {.names = {"--event_log_handler"}, .argument = "NAME", .choices = {"null"}}),
      question({.names = {"--print_completion"},
                .argument = "SHELL",
                .help = "Print the completion script for bash, zsh or fish",
                .choices = {"bash", "zsh", "fish"}}),
  };
}

std::vector<Flag> torchrun_supervision(LaunchOptions& options) {
  return {
      value(
          options.signals_to_handle, parse_signals,
          {.names = {"--signals_to_handle"},
           .argument = "SIGNALS",
           .help =
               "Signals that end the run. When SIGUSR1, SIGUSR2 or SIGQUIT is listed, the workers get that signal"}),
      noted(options.notes, "fleetrun notices the end of a worker at once and does not poll",
            {.names = {"--monitor_interval"}, .argument = "SECONDS"}),
  };
}

std::vector<Flag> mpirun_flags(LaunchOptions& options) {
  return {
      value(
          options.hosts, parse_host_list,
          {.names = {"--hosts", "-H"},
           .argument = "HOSTS",
           .help =
               "Hosts with their slots, as node1:4,node2:4 or localhost:4. Several hosts are the nodes of the run, as in --ips. Without -n fleetrun starts one worker per slot",
           .of_node = true}),
      bind_to(options),
      tag_output(options),
      noted(options.notes, "workers may always share cores; --bind=cores gives each rank its own",
            {.names = {"--oversubscribe"}}),
      noted(options.notes, "fleetrun runs as any user", {.names = {"--allow_run_as_root"}}),
      value(options.hostfile, as_text,
            {.names = {"--hostfile", "--machinefile"},
             .argument = "FILE",
             .help = "File with a host in each line, as node1 slots=4 or node1:4. Same as --hosts",
             .completes = Completes::files,
             .of_node = true}),
      refused("a setting of Open MPI, which fleetrun does not use",
              {.names = {"--mca"}, .argument = "SETTING", .help = "Refused: fleetrun does not use Open MPI"}),
      refused("the workers of one host are numbered in the order of their devices",
              {.names = {"--map_by", "--rank_by"},
               .argument = "WHAT",
               .help = "Refused: fleetrun numbers the workers in the order of their devices"}),
  };
}

std::vector<Flag> horovodrun_flags(LaunchOptions& options) {
  return {
      noted(options.notes, "the program chooses how its ranks reach each other", {.names = {"--gloo"}}),
      noted(options.notes, "--log_level=DEBUG makes fleetrun log the most", {.names = {"--verbose"}}),
      noted(options.notes, "workers of one host start without waiting",
            {.names = {"--start_timeout"}, .argument = "SECONDS"}),
      noted(options.notes, "fleetrun keeps nothing about the network between runs",
            {.names = {"--disable_cache"}}),
      noted(options.notes, "--log_prefix='{time} [{rank}] ' puts the time before each line",
            {.names = {"--prefix_output_with_timestamp"}}),
  };
}

}  // namespace

std::vector<Flag> peer_flags(LaunchOptions& options) {
  std::vector<Flag> table;
  const auto add = [&](const char* launcher, std::vector<Flag> flags) {
    flags = accepted_from(launcher, std::move(flags));
    std::move(flags.begin(), flags.end(), std::back_inserter(table));
  };
  add("torchrun", torchrun_meeting(options));
  add("torchrun", torchrun_workers(options));
  add("torchrun", torchrun_output(options));
  add("torchrun", torchrun_supervision(options));
  add("mpirun", mpirun_flags(options));
  add("horovodrun", horovodrun_flags(options));
  return table;
}

}  // namespace fleetrun::launch
