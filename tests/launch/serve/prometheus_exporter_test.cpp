#include "launch/serve/prometheus_exporter.h"

#include <doctest/doctest.h>
#include <boost/asio/io_context.hpp>

#include "support/temporary_folder.h"

namespace fleetrun::launch::prometheus_exporter_test {
namespace {

TEST_CASE("nothing is written to the file of metrics after its last state") {
  const TemporaryFolder folder;
  LaunchOptions options;
  options.metrics_file.value = folder / "metrics.prom";
  const ExitReport report;
  const std::vector<WorkerRecord> workers;
  const std::vector<ProgressPagePtr> pages;
  const std::vector<pid_t> survivors;
  EventLoop loop;
  PrometheusExporter exporter(loop, options, {{report.verdict, workers, pages, survivors}, report},
                              [](std::string_view) {});
  CHECK(folder.read("metrics.prom").find("fleetrun_exit_code") == std::string::npos);
  exporter.finish(3);
  CHECK(folder.read("metrics.prom").find("fleetrun_exit_code") != std::string::npos);
  loop.context().poll();
  CHECK(loop.context().stopped());  // the loop waits for nothing more
}

}  // namespace
}  // namespace fleetrun::launch::prometheus_exporter_test
