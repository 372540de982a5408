#include "launch/serve/prometheus_exporter.h"

#include <doctest/doctest.h>
#include <boost/asio/io_context.hpp>

#include "support/temporary_folder.h"

namespace fleetrun::launch::prometheus_exporter_test {
namespace {

// A run without ranks. It writes its metrics to metrics.prom.
struct MeasuredRun {
  MeasuredRun() { options.metrics_file.value = folder / "metrics.prom"; }
  MetricsSource source() const {
    return {.state = {report.verdict, workers, pages, survivors}, .report = report};
  }

  const TemporaryFolder folder;
  LaunchOptions options;
  const ExitReport report;
  const std::vector<WorkerRecord> workers;
  const std::vector<ProgressPagePtr> pages;
  const std::vector<pid_t> survivors;
  EventLoop loop;
};

TEST_CASE("nothing is written to the file of metrics after its last state") {
  MeasuredRun run;
  PrometheusExporter exporter(run.loop, run.options, run.source(), [](std::string_view) {});
  CHECK(run.folder.read("metrics.prom").find("fleetrun_exit_code") == std::string::npos);
  exporter.finish(3);
  CHECK(run.folder.read("metrics.prom").find("fleetrun_exit_code") != std::string::npos);
  run.loop.context().poll();
  CHECK(run.loop.context().stopped());  // the loop waits for nothing more
}

TEST_CASE("an attempt that began because a node joined does not count as a restart") {
  MeasuredRun run;
  MetricsSource source = run.source();
  source.restarts = [] { return 4; };
  CHECK(measure_run(source).restarts == 4);
  ExitReport third;
  third.verdict.attempt = 2;
  CHECK(measure_run({.state = {third.verdict, run.workers, run.pages, run.survivors}, .report = third})
            .restarts == 2);
}

TEST_CASE(
    "a node that shares the file of metrics with the first one does not write it, until it is the first") {
  MeasuredRun run;
  bool owns = false;
  MetricsSource source = run.source();
  source.owns_file = [&] { return owns; };
  PrometheusExporter exporter(run.loop, run.options, source, [](std::string_view) {});
  CHECK_FALSE(run.folder.has("metrics.prom"));
  owns = true;
  exporter.finish(0);
  CHECK(run.folder.has("metrics.prom"));
}

}  // namespace
}  // namespace fleetrun::launch::prometheus_exporter_test
