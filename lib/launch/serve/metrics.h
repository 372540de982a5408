// What Prometheus is told of a run: on a port (--metrics_port) and in a file (--metrics_file), if the user wants them.
#pragma once
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/progress_page.h"
#include "launch/cli/launch_options.h"
#include "launch/loop/event_loop.h"
#include "launch/report/report.h"
#include "launch/serve/metrics_server.h"
#include "launch/serve/metrics_text.h"
#include "launch/supervise/process_group.h"

namespace fleetrun::launch {

// Where the numbers come from.
struct MetricsSource {
  const ProcessGroup& group;
  const std::vector<ProgressPagePtr>& pages;  // of the embedded runtime
  const ExitReport& report;
};

class Metrics {
 public:
  // `say` takes lines for people. All outlive it. Throws Error(temporary) when the port is taken.
  Metrics(EventLoop& loop, const LaunchOptions& options, const MetricsSource& source,
          std::function<void(std::string_view line)> say);

  void finish(int exit_code);  // the file's last state

 private:
  void write_again_later();
  void write(const RunMetrics& run);

  EventLoop& loop_;
  MetricsSource source_;
  std::function<void(std::string_view line)> say_;
  std::string file_;     // "": none
  bool failed_ = false;  // the last time
  std::unique_ptr<MetricsServer> server_;
};

RunMetrics measure_run(const MetricsSource& source);

}  // namespace fleetrun::launch
