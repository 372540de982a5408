#include "launch/serve/prometheus_text.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::prometheus_text_test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

RunMetrics script_run() {
  return {.run_id = "f00d",
          .job_id = "a \"job\"\\\n",
          .host = "here",
          .version = "1.2.3",
          .start_time = 1.7e9,
          .restarts = 2,
          .exit_code = std::nullopt,
          .ranks = {{.up = true}, {.up = false, .exit_code = 137}}};
}

TEST_CASE(
    "a run of any program is reported with its workers, restarts and exits, and nothing of a training") {
  CHECK(prometheus_text(script_run()) ==
        "# HELP fleetrun_info The run of these metrics.\n"
        "# TYPE fleetrun_info gauge\n"
        "fleetrun_info{run_id=\"f00d\",job_id=\"a \\\"job\\\"\\\\\\n\",host=\"here\",version=\"1.2.3\"} 1\n"
        "# HELP fleetrun_start_time_seconds Start of the run, in seconds since 1970.\n"
        "# TYPE fleetrun_start_time_seconds gauge\n"
        "fleetrun_start_time_seconds 1700000000\n"
        "# HELP fleetrun_restarts_total Restarts of all ranks after a failure.\n"
        "# TYPE fleetrun_restarts_total counter\n"
        "fleetrun_restarts_total 2\n"
        "# HELP fleetrun_workers Number of ranks.\n"
        "# TYPE fleetrun_workers gauge\n"
        "fleetrun_workers 2\n"
        "# HELP fleetrun_worker_up 1 while the rank's process runs, otherwise 0.\n"
        "# TYPE fleetrun_worker_up gauge\n"
        "fleetrun_worker_up{rank=\"0\"} 1\n"
        "fleetrun_worker_up{rank=\"1\"} 0\n"
        "# HELP fleetrun_worker_exit_code Exit code of the rank in this attempt; 128 + n after signal n.\n"
        "# TYPE fleetrun_worker_exit_code gauge\n"
        "fleetrun_worker_exit_code{rank=\"1\"} 137\n");
}

TEST_CASE("--job_id $'a\\xffb' --metrics_file: a name that is not UTF-8 is replaced") {
  RunMetrics run = script_run();
  run.job_id =
      "a\xff"
      "b";
  CHECK(contains(prometheus_text(run),
                 "job_id=\"a\xEF\xBF\xBD"
                 "b\""));
}

TEST_CASE("the load of the GPUs is reported, as far as it is known") {
  RunMetrics run = script_run();
  run.ranks[1].gpu = {
      .busy_percent = 97, .memory_used = 1 << 30, .memory_total = 1LL << 36, .milliwatts = 412'500};
  const std::string text = prometheus_text(run);
  CHECK(contains(text, "fleetrun_gpu_utilization_ratio{rank=\"1\"} 0.97\n"));
  CHECK(contains(text, "fleetrun_gpu_memory_used_bytes{rank=\"1\"} 1073741824\n"));
  CHECK(contains(text, "fleetrun_gpu_memory_total_bytes{rank=\"1\"} 68719476736\n"));
  CHECK(contains(text, "fleetrun_gpu_power_watts{rank=\"1\"} 412.5\n"));
  CHECK_FALSE(contains(text, "celsius"));
  CHECK_FALSE(contains(text, "utilization_ratio{rank=\"0\"}"));
}

TEST_CASE("the code of a run that has ended is reported") {
  RunMetrics run = script_run();
  run.exit_code = 78;
  CHECK(contains(prometheus_text(run), "\nfleetrun_exit_code 78\n"));
}

TEST_CASE("a training is reported by rank") {
  RunMetrics run = script_run();
  RankMetrics& rank = run.ranks[1];
  run.ranks[0].progress = Progress();
  rank.progress = {.phase = Phase::training, .epoch = 1, .step = 12345678, .steps = 20000000, .loss = 0.25};
  rank.communication_share = 0.125;
  rank.spent_ns[static_cast<std::size_t>(TimeUse::checkpoint)] = 1'500'000'000;
  const std::string text = prometheus_text(run);
  for (const char* line : {"fleetrun_step{rank=\"1\"} 12345678\n", "fleetrun_loss{rank=\"1\"} 0.25\n",
                           "fleetrun_communication_ratio{rank=\"1\"} 0.125\n",
                           "fleetrun_phase{rank=\"0\",phase=\"starting\"} 1\n",
                           "fleetrun_phase{rank=\"1\",phase=\"training\"} 1\n",
                           "fleetrun_time_seconds_total{rank=\"1\",use=\"checkpoint\"} 1.5\n"})
    CHECK_MESSAGE(contains(text, line), line);
}

TEST_CASE("a slow rank is reported with its host and its phase, and only then") {
  RunMetrics run = script_run();
  CHECK_FALSE(contains(prometheus_text(run), "straggler"));
  run.stragglers = {{.rank = 3, .host = "beta", .phase = "data", .factor = 1.5}};
  CHECK(contains(prometheus_text(run),
                 "# TYPE fleetrun_straggler_ratio gauge\n"
                 "fleetrun_straggler_ratio{rank=\"3\",host=\"beta\",phase=\"data\"} 1.5\n"));
}

TEST_CASE("numbers that are none are written as Prometheus has them") {
  RunMetrics run = script_run();
  run.ranks[0].progress = Progress{.loss = std::numeric_limits<double>::quiet_NaN()};
  run.ranks[1].progress = Progress{.loss = -std::numeric_limits<double>::infinity()};
  const std::string text = prometheus_text(run);
  CHECK(contains(text, "fleetrun_loss{rank=\"0\"} NaN\n"));
  CHECK(contains(text, "fleetrun_loss{rank=\"1\"} -Inf\n"));
}

}  // namespace
}  // namespace fleetrun::launch::prometheus_text_test
