// The settings of a run: what the user set on the command line, in the environment and in a file, and where.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/run/run_key.h"
#include "base/system/endpoint.h"
#include "job/spec/job_spec.h"
#include "launch/cli/flags/flag.h"
#include "launch/cli/flags/log_prefix.h"
#include "launch/cli/flags/log_rule.h"
#include "launch/cli/flags/peer_values.h"
#include "launch/cli/flags/rank_set.h"
#include "launch/cli/flags/start_by.h"
#include "launch/loop/clock.h"
#include "launch/process/usual_waits.h"

namespace fleetrun::launch {

// The name under which we were called: a link called torchrun brings torchrun's defaults.
enum class CalledAs { fleetrun, torchrun };

enum class Binding { none, cores };
enum class UseCgroup { automatic, none };
enum class Banner { paddle, brief, none };
enum class LogLevel { debug, info, warning, error, critical };

// --debug_rank 3='gdb --args': the words that stand in front of the program of one rank.
struct DebugRank {
  int rank = 0;
  std::vector<std::string> wrapper;
};

// How many nodes a run has: --nnodes=4, or 2:4 for a number that may change.
struct NodeRange {
  int least = 1, most = 1;

  bool operator==(const NodeRange&) const = default;
};

// The defaults are written here and nowhere else; what each value is for stands in launch_flags.cpp.
struct LaunchOptions {
  Setting<std::optional<std::string>> gpus;
  Setting<std::optional<WorkerCount>> nproc_per_node;
  Setting<std::optional<HostList>> hosts;
  Setting<std::string> hostfile;  // "": none
  Setting<std::string> scheduler{"auto"};
  Setting<std::string> topology;       // file; "": the order of the list
  Setting<std::string> exclude_hosts;  // file; "": none
  Setting<StartBy> start_by{StartBy::automatic};
  Setting<bool> module;
  Setting<bool> no_python;
  Setting<bool> run_path;
  Setting<std::vector<RankVariable>> env;
  Setting<std::optional<int>> interactive;  // the rank that has the terminal
  Setting<std::string> ips{"127.0.0.1"};
  Setting<std::optional<std::string>> host;
  Setting<std::optional<NodeRange>> nnodes;
  Setting<int> spares{0};
  Setting<Clock::duration> elastic_timeout{std::chrono::seconds(30)};
  Setting<std::string> rejoin_at;  // hosts; "": none
  Setting<std::optional<int>> node_rank;
  Setting<Clock::duration> join_timeout{std::chrono::minutes(10)};
  Setting<bool> preflight;
  Setting<std::string> key_file;  // "": the one in the home folder
  Setting<bool> insecure;
  Setting<std::optional<Endpoint>> master;
  Setting<bool> standalone;
  Setting<std::optional<MeetingPoint>> rdzv_endpoint;
  Setting<std::optional<std::string>> rdzv_id;
  Setting<std::optional<std::string>> master_addr;
  Setting<std::optional<std::uint16_t>> master_port;
  Setting<std::string> role{"default"};
  Setting<bool> virtual_local_rank;
  Setting<bool> auto_cluster_config;
  Setting<std::optional<std::uint16_t>> start_port;
  Setting<job::DeviceChoice> device{job::DeviceChoice::automatic};
  Setting<std::string> log_dir{"log"};  // "": a new folder below $TMPDIR
  Setting<RankSet> console{{.text = "0", .ranges = {{0, 0}}}};
  Setting<std::optional<LogPrefix>> log_prefix;
  Setting<StreamMap> redirects;  // streams that the console does not show
  Setting<StreamMap> tee;        // streams that it shows with tee_prefix
  Setting<TeePrefix> tee_prefix;
  Setting<LogLevel> log_level{LogLevel::info};
  Setting<Banner> banner{Banner::paddle};
  Setting<std::string> dump_program;  // "": off
  Setting<std::string> dump_passes;   // "": off
  Setting<std::string> tune;  // a text of write_tune_request(), from fleetrun tune; "": the ranks train
  Setting<std::string> eval;  // the folder of the report, from fleetrun eval; "": the ranks train
  Setting<std::optional<Endpoint>> metrics_port;
  Setting<std::string> metrics_file;  // "": off
  Setting<std::string> job_id{"default"};
  Setting<Binding> bind{Binding::none};
  Setting<std::vector<DebugRank>> debug_rank;
  Setting<std::vector<std::string>> nccl;  // "NCCL_DEBUG=INFO"
  Setting<bool> no_port_hold;
  Setting<Clock::duration> grace{kUsualGrace};
  Setting<Clock::duration> kill_wait{kUsualKillWait};
  Setting<std::optional<SignalSet>> signals_to_handle;
  Setting<std::optional<Clock::duration>> timeout;
  Setting<int> max_restart{0};
  Setting<std::optional<Clock::duration>> restart_window;  // none: the whole run
  Setting<Clock::duration> restart_delay{kUsualRestartDelay};
  Setting<std::vector<int>> no_restart_on;               // exit codes
  Setting<std::optional<Clock::duration>> hang_timeout;  // from a flag, none means never
  Setting<std::optional<LogRule>> log_rule;
  Setting<std::optional<Clock::duration>> straggler_after{std::chrono::seconds(20)};  // none: never
  Setting<std::optional<Clock::duration>> early_exit_wait;
  Setting<UseCgroup> cgroup{UseCgroup::automatic};
  Setting<std::string> dry_run;      // "text", "json"; "": off
  Setting<std::string> show_config;  // "text", "json"; "": off
  Setting<std::string> config;       // "": no file

  CalledAs called_as = CalledAs::fleetrun;
  std::optional<RunKey> given_key;    // of the nodes, from the fleetrun that starts them; it wins over a file
  std::vector<std::string> left_out;  // nodes that --exclude_hosts leaves out
  std::vector<std::string> notes;     // on flags that have no effect
  std::vector<std::string> mode_flags;  // those of the original's "gpu arguments" that were given
  std::string program;                  // script, job file or program, as given
  std::vector<std::string> arguments;   // never interpreted
};

}  // namespace fleetrun::launch
