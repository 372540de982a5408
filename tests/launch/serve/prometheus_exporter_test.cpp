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

TEST_CASE(
    "a node that shares the file of metrics with the first one does not write it, until it is the first") {
  const TemporaryFolder folder;
  LaunchOptions options;
  options.metrics_file.value = folder / "metrics.prom";
  const ExitReport report;
  const std::vector<WorkerRecord> workers;
  const std::vector<ProgressPagePtr> pages;
  const std::vector<pid_t> survivors;
  bool owns = false;
  EventLoop loop;
  PrometheusExporter exporter(loop, options,
                              {.state = {report.verdict, workers, pages, survivors},
                               .report = report,
                               .owns_file = [&] { return owns; }},
                              [](std::string_view) {});
  CHECK_FALSE(folder.has("metrics.prom"));
  owns = true;
  exporter.finish(0);
  CHECK(folder.has("metrics.prom"));
}

}  // namespace
}  // namespace fleetrun::launch::prometheus_exporter_test
