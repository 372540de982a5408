#include "launch/cli/peer_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "launch/cli/flag_rows.h"

namespace fleetrun::launch {
namespace {

std::string parse_rdzv_backend(const std::string& source, const std::string& text) {
  if (text == "static" || text == "c10d") return text;
  const bool known = text == "etcd" || text == "etcd-v2";
  throw Error(ErrorKind::usage,
              known
                  ? fmt::format("{} is \"{}\": fleetrun needs no etcd, the ranks of one host meet without it",
                                source, text)
                  : fmt::format("{} is \"{}\", must be static or c10d", source, text));
}

// Both back ends come to the same here, so that there is no setting to keep.
Option rdzv_backend() {
  Option option{.names = {"--rdzv_backend"},
                .argument = "BACKEND",
                .help = "static or c10d: with one node both mean the same"};
  option.set = [](const std::string& text, const Source& source) { parse_rdzv_backend(source.name, text); };
  option.choices = {"static", "c10d"};
  return option;
}

Option numa_binding(LaunchOptions& options) {
  const std::vector<std::string> modes = {"node", "socket", "exclusive", "core-complex"};
  Option option{.names = {"--numa_binding"},
                .argument = "MODE",
                .help = "Taken as --bind=cores: every rank gets cores of its own, close to each other"};
  option.set = [&options, modes](const std::string& text, const Source& source) {
    if (std::find(modes.begin(), modes.end(), text) == modes.end())
      throw Error(
          ErrorKind::usage,
          fmt::format("{} is \"{}\", must be node, socket, exclusive or core-complex", source.name, text));
    options.bind = {Binding::cores, source.origin, source.name};
    options.notes.push_back(fmt::format("{}={} is taken as --bind=cores", source.name, text));
  };
  option.choices = modes;
  return option;
}

Option bind_to(LaunchOptions& options) {
  Option option{
      .names = {"--bind_to"}, .argument = "WHAT", .help = "core: as --bind=cores; none: as --bind=none"};
  option.set = [&options](const std::string& text, const Source& source) {
    if (text != "core" && text != "none")
      throw Error(ErrorKind::usage,
                  fmt::format("{} is \"{}\", must be core or none; --bind says more", source.name, text));
    options.bind = {text == "core" ? Binding::cores : Binding::none, source.origin, source.name};
  };
  option.choices = {"core", "none"};
  return option;
}

// What mpirun and horovodrun show of their ranks is what fleetrun shows with --console=all.
Option tag_output(LaunchOptions& options) {
  Option option{.names = {"--tag_output"}, .help = "As --console=all, which puts the rank before each line"};
  option.takes = Option::Takes::nothing;
  option.set = [&options](const std::string&, const Source& source) {
    if (options.console.origin == Origin::fallback)
      options.console = {parse_ranks(source.name, "all"), source.origin, source.name};
  };
  return option;
}

std::vector<Option> torchrun_meeting(LaunchOptions& options) {
  return {
      on_or_off("--standalone", options.standalone,
                "Meet on a free port of this host, whatever --rdzv_endpoint, --master_addr and "
                "--master_port say"),
      rdzv_backend(),
      value("--rdzv_endpoint", "HOST[:PORT]", "", options.rdzv_endpoint, parse_meeting_point,
            "MASTER_ADDR and MASTER_PORT of the workers; without a port or with port 0 a free one"),
      value("--rdzv_id", "NAME", "", options.rdzv_id, as_text, "TORCHELASTIC_RUN_ID of the workers"),
      noted("--rdzv_conf", "SETTINGS", options.notes, "with one node no launcher waits for another", {""}),
      value("--master_addr", "ADDRESS", "", options.master_addr, as_text, "MASTER_ADDR, on this host"),
      value("--master_port", "PORT", "", options.master_port, parse_port, "MASTER_PORT"),
  };
}

std::vector<Option> torchrun_workers(LaunchOptions& options) {
  return {
      on_or_off("--no_python", options.no_python, "Run the program directly, whatever its name ends with"),
      on_or_off("--run_path", options.run_path,
                "Run the script by Python's runpy.run_path; wins over --no_python"),
      value("--role", "NAME", "", options.role, parse_role, "ROLE_NAME of the workers, {role} in prefixes"),
      on_or_off("--virtual_local_rank", options.virtual_local_rank,
                "Each worker sees only its own GPUs, and LOCAL_RANK is 0"),
      numa_binding(options),
      noted("--start_method", "METHOD", options.notes,
            "workers are programs of their own, which no start method concerns"),
  };
}

std::vector<Option> torchrun_output(LaunchOptions& options) {
  return {
      value("--redirects,-r", "STREAMS", "", options.redirects, parse_streams,
            "Streams that go to the log only: 0 none, 1 stdout, 2 stderr, 3 both, or by local rank 0:1,1:2"),
      value("--tee,-t", "STREAMS", "", options.tee, parse_streams,
            "Streams that the console shows with a prefix, as for --redirects"),
      value("--log_line_prefix_template", "TEMPLATE", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
            options.tee_prefix, parse_torch_prefix,
            "Prefix of lines that --tee shows, of ${role_name}, ${local_rank}, ${rank} and ${hostname}"),
      noted("--duplicate_stdout_filters", "TEXTS", options.notes,
            "fleetrun logs --grep=REGEX shows such lines, during the run and after it"),
      noted("--duplicate_stderr_filters", "TEXTS", options.notes,
            "fleetrun logs --grep=REGEX shows such lines, during the run and after it"),
      refused("--logs_specs",
              "a Python class of torchrun's cannot decide where our logs go; --log_dir, --console and "
              "--log_prefix do",
              "Refused: --log_dir, --console and --log_prefix stand for it"),
      noted("--event_log_handler", "NAME", options.notes,
            "log/report.json says what happened, --metrics_port tells Prometheus", {"null"}),
      one_of({"bash", "zsh", "fish"},
             [] {
               Option option = question("--print_completion", "As fleetrun completion SHELL");
               option.takes = Option::Takes::value;
               option.argument = "SHELL";
               return option;
             }()),
  };
}

std::vector<Option> torchrun_supervision(LaunchOptions& options) {
  return {
      value("--signals_to_handle", "SIGNALS", "", options.signals_to_handle, parse_signals,
            "Signals that end the run; SIGUSR1, SIGUSR2 and SIGQUIT then do, and the workers get them"),
      noted("--monitor_interval", "SECONDS", options.notes,
            "fleetrun notices the end of a worker at once and does not poll"),
  };
}

std::vector<Option> mpirun_flags(LaunchOptions& options) {
  return {
      value("--hosts,-H", "HOSTS", "", options.hosts, parse_host_list,
            "Hosts with slots, as localhost:4: this host only; without -n as many workers as slots"),
      bind_to(options),
      tag_output(options),
      noted("--oversubscribe", "", options.notes, "workers may always share cores; --bind=cores parts them"),
      noted("--allow_run_as_root", "", options.notes, "fleetrun runs as any user"),
      refused("--hostfile,--machinefile", "runs over several nodes are not supported yet",
              "Refused: runs over several nodes are not supported yet"),
      refused("--mca", "a setting of Open MPI, which fleetrun does not use",
              "Refused: settings of Open MPI, which fleetrun does not use"),
      refused("--map_by,--rank_by", "the workers of one host are numbered in the order of their devices",
              "Refused: the workers of one host are numbered in the order of their devices"),
  };
}

std::vector<Option> horovodrun_flags(LaunchOptions& options) {
  return {
      noted("--gloo", "", options.notes, "the program chooses how its ranks reach each other"),
      noted("--verbose", "", options.notes, "--log_level=DEBUG is the most that fleetrun says"),
      noted("--start_timeout", "SECONDS", options.notes, "workers of one host start without waiting"),
      noted("--disable_cache", "", options.notes, "nothing about the network is kept between runs"),
      noted("--prefix_output_with_timestamp", "", options.notes,
            "--log_prefix='{time} [{rank}] ' puts the time before each line"),
  };
}

}  // namespace

std::vector<Option> peer_options(LaunchOptions& options) {
  std::vector<Option> table;
  const auto add = [&](const char* launcher, std::vector<Option> rows) {
    rows = accepted_from(launcher, std::move(rows));
    std::move(rows.begin(), rows.end(), std::back_inserter(table));
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
