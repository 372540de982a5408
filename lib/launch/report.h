// How a run ended, for people on stderr and for programs in log/report.json.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/process_group.h"
#include "launch/supervisor.h"

namespace fleetrun::launch {

struct ExitReport {
  std::string run_id, job_id;
  std::vector<std::string> command;  // of a worker
  std::vector<std::string> logs;     // of each rank, as people see the path
  std::vector<WorkerRecord> workers;
  Verdict verdict;
  std::vector<pid_t> survivors;         // not even SIGKILL ended them
  std::vector<std::string> last_lines;  // of the log of the first failure
  std::optional<std::string> error;     // why fleetrun itself could not go on; then there is no verdict
  std::string train;                    // text of log/train.json, "" when there is none
  std::chrono::system_clock::time_point started, ended;
};

// The block on stderr: what failed and where to look. Empty when all went well.
std::string describe(const ExitReport& report);

// One line, the moment the first failure is noticed: "rank 1 exited with code 3".
std::string describe_cause(const Verdict& verdict, const std::vector<std::string>& command);

std::string report_json(const ExitReport& report);

// The last `count` lines of a file, control characters replaced; none when it cannot be read.
std::vector<std::string> read_last_lines(const std::string& path, std::size_t count);

}  // namespace fleetrun::launch
