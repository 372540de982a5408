// What the user said on the command line, in the environment and in a file, and where each value came from.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/endpoint.h"
#include "base/environment.h"
#include "job/job_spec.h"
#include "launch/clock.h"
#include "launch/log_rule.h"
#include "launch/option.h"

namespace fleetrun::launch {

enum class UseCgroup { automatic, none };
enum class LogLevel { debug, info, warning, error, critical };

// The defaults are written here and nowhere else; what each value is for stands in option_table.cpp.
struct LaunchOptions {
  Setting<std::optional<std::string>> gpus;
  Setting<std::optional<int>> nproc_per_node;
  Setting<std::string> ips{"127.0.0.1"};
  Setting<std::optional<std::string>> host;
  Setting<std::optional<Endpoint>> master;
  Setting<std::optional<std::uint16_t>> start_port;
  Setting<job::DeviceChoice> device{job::DeviceChoice::automatic};
  Setting<std::string> log_dir{"log"};
  Setting<LogLevel> log_level{LogLevel::info};
  Setting<std::string> dump_program;  // "": off
  Setting<std::string> job_id{"default"};
  Setting<Clock::duration> grace{std::chrono::seconds(10)};
  Setting<std::optional<Clock::duration>> timeout;
  Setting<int> max_restart{0};
  Setting<Clock::duration> restart_delay{std::chrono::seconds(1)};
  Setting<std::optional<Clock::duration>> hang_timeout;  // from a flag, none means never
  Setting<std::optional<LogRule>> log_rule;
  Setting<std::optional<Clock::duration>> early_exit_wait;  // from a flag, none means for ever
  Setting<UseCgroup> cgroup{UseCgroup::automatic};
  Setting<std::string> show_config;  // "text", "json"; "": off
  Setting<std::string> config;       // "": no file

  std::vector<std::string> mode_flags;  // those of the original's "gpu arguments" that were given
  std::string program;                  // script, job file or program, as given
  std::vector<std::string> arguments;   // never interpreted
};

struct CommandLine {
  LaunchOptions options;
  std::optional<std::string> answer;  // --help, --version, --show_config: what to print instead of launching
};

// `arguments` without the program's own name. Flag > environment > file > default.
// Throws Error(usage), and Error(config) for a bad file.
CommandLine parse_launch_options(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace fleetrun::launch
