// The subcommands of fleetrun. Each gets the words after its name, prints to stdout what was asked for, and
// returns the exit code; what goes wrong leaves as an Error.
#pragma once
#include <string>
#include <vector>

namespace fleetrun {

// fleetrun config job.json [key.path=value...] | --schema | --keys: what a job file means, and what it may
// say.
int run_config_command(const std::vector<std::string>& arguments);

// fleetrun export job.json [key.path=value...] OUT.safetensors: the weights that a job starts with.
int run_export_command(const std::vector<std::string>& arguments);

// fleetrun bench all_reduce: how fast ranks of this host sum.
int run_bench_command(const std::vector<std::string>& arguments);

// fleetrun logs: what the ranks of a run wrote. fleetrun ps, stop, signal: what a running fleetrun is asked.
int run_logs_command(const std::vector<std::string>& arguments);
int run_ps_command(const std::vector<std::string>& arguments);
int run_stop_command(const std::vector<std::string>& arguments);
int run_signal_command(const std::vector<std::string>& arguments);

// fleetrun completion bash|zsh|fish, fleetrun man: what a shell and man(1) read.
int run_completion_command(const std::vector<std::string>& arguments);
int run_man_command(const std::vector<std::string>& arguments);

}  // namespace fleetrun
