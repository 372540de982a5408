// The metrics of a run in the text format of Prometheus, version 0.0.4.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/run/time_use.h"
#include "base/system/nvml.h"
#include "launch/console/progress_line.h"

namespace fleetrun::launch {

// One rank at one moment.
struct RankMetrics {
  bool up = false;
  std::optional<int> exit_code;      // in the present attempt; 128 + n after signal n
  std::optional<Progress> progress;  // of the embedded runtime
  TimeUses spent_ns{};               // of the embedded runtime
  double communication_share = 0;
  double heartbeat_age = 0;      // seconds
  std::uint64_t first_step = 0;  // the steps that the times do not include
  std::uint64_t peak_kib = 0;    // most memory that its process held so far; 0: not known
  GpuLoad gpu = {};              // of the GPU that the embedded runtime uses
};

struct StragglerMetrics {
  int rank = 0;
  std::string host, phase;
  double factor = 0;
};

struct RunMetrics {
  std::string run_id, job_id, host, version;
  double start_time = 0;  // seconds since 1970
  int restarts = 0;
  std::optional<int> exit_code;    // of fleetrun, once the run is over
  int first_rank = 0;              // the number of the first of `ranks`
  std::vector<RankMetrics> ranks;  // of this node; on the first node, of all
  std::vector<StragglerMetrics> stragglers = {};
};

constexpr std::string_view kMetricsStart = "# HELP fleetrun_";  // marks a file as ours

std::string prometheus_text(const RunMetrics& run);

// The text as a label's value, with backslashes, quotes and line ends escaped.
std::string escape_label(const std::string& text);

}  // namespace fleetrun::launch
