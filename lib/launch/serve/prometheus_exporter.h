// Exports the metrics of a run to Prometheus: on a port (--metrics_port) and in a file (--metrics_file).
#pragma once
#include <functional>
#include <memory>
#include <string_view>

#include "launch/cli/flags/launch_options.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/timer.h"
#include "launch/report/report.h"
#include "launch/serve/http_server.h"
#include "launch/serve/prometheus_text.h"
#include "launch/supervise/run_state.h"

namespace fleetrun::launch {

// Where the numbers come from.
struct MetricsSource {
  RunState state;
  const ExitReport& report;
  std::function<std::vector<RankMetrics>()> others =
      {};  // the ranks of the other nodes; none: only ours count
  // Whether the file of --metrics_file is ours: nodes that share the command and the folder have one file, that of the first node. None: it is.
  std::function<bool()> owns_file = {};
  // Before the present attempt. None: every attempt but the first is a restart.
  std::function<int()> restarts = {};
};

class PrometheusExporter {
 public:
  // `say` takes lines for people. All outlive it. Throws Error(temporary) when the port is taken.
  PrometheusExporter(EventLoop& loop, const LaunchOptions& options, const MetricsSource& source,
                     std::function<void(std::string_view line)> say);

  void finish(int exit_code);  // the file's last state

 private:
  HttpAnswer answer(const std::string& path) const;
  void write_again_later();
  void write(const RunMetrics& run);

  Timer rewrite_;
  MetricsSource source_;
  std::function<void(std::string_view line)> say_;
  std::string file_;     // "": none
  bool failed_ = false;  // writing the file failed the last time
  std::unique_ptr<HttpServer> server_;
};

RunMetrics measure_run(const MetricsSource& source);

// Of the path /metrics; 404 for others.
HttpAnswer metrics_answer(const std::string& path, const std::function<std::string()>& text);

}  // namespace fleetrun::launch
