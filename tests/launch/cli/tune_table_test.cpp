#include "launch/cli/tune_table.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"

namespace fleetrun::launch::tune_table_test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

JsonValue result(const std::string& settings, const std::string& rest) {
  return read_json(
             R"({"ranks": 2, "timed_steps": 120, "seconds": 30.4, "made": "2026-11-25 18:00 UTC", "default_ms": 51.2,
    "tried": [{"name": "all fusions", "ratio": 0.931, "low": 0.921, "high": 0.944, "turns": 26}],
    "same": ["fuse_relu_depthwise_conv"], "left_out": ["amp"], "notes": ["fusions: faster"], "settings": )" +
             settings + ", " + rest + "}")
      .root;
}

TEST_CASE("the table has a row for each setting, the verdict, and what was found about the advice") {
  const std::string text = tune_table(result(
      R"(["strategy.amp=true"])",
      R"("kept": false, "confirmed": {"name": "all fusions", "ratio": 0.93, "low": 0.92, "high": 0.94, "turns": 24}, "explained": [{"name": "strategy.amp=true", "ratio": 1.1, "low": 1.05, "high": 1.2, "turns": 9}])"));
  CHECK(contains(text, "2 ranks: 120 steps timed in 30 s\n"));
  CHECK(contains(text, "a step of the unchanged job takes 51.2 ms"));
  CHECK(contains(text, "all fusions           0.931  0.921 to 0.944     26\n"));
  CHECK(contains(text, "no change here, or not possible: fuse_relu_depthwise_conv\n"));
  CHECK(contains(text, "not tried, because the budget is too small: amp\n"));
  CHECK(contains(
      text,
      "result: all fusions takes 0.930 (0.920 to 0.940) of the time, in 24 turns against the unchanged job\n"));
  CHECK(contains(text, "strategy.amp=true     1.100  1.050 to 1.200      9  it makes the step faster\n"));
  CHECK(contains(text, "  fusions: faster\n"));
}

TEST_CASE("a kept result says that no step was timed, and a doubtful one that the job stays as it is") {
  const std::string text = tune_table(result(
      "[]",
      R"("kept": true, "confirmed": {"name": "all fusions", "ratio": 0.99, "low": 0.97, "high": 1.01, "turns": 24})"));
  CHECK(contains(
      text,
      "2 ranks: no step was timed, because the result of 2026-11-25 18:00 UTC is kept (--again measures anew)\n"));
  CHECK(contains(text, "result: the unchanged job; all fusions takes 0.990 (0.970 to 1.010)"));
  CHECK(contains(tune_table(result("[]", R"("kept": true)")),
                 "result: nothing is faster than the unchanged job\n"));
}

TEST_CASE("a result of loader threads alone is a result") {
  CHECK(contains(tune_table(result(R"(["data.loader_threads=4"])", R"("kept": true)")),
                 "result: data.loader_threads=4\n"));
}

TEST_CASE("settings become part of a job file") {
  CHECK(
      to_json(settings_as_job({"data.batch_size=16", "strategy.build_strategy.reduce_strategy=Reduce",
                               "strategy.nccl_comm_num=2"})) ==
      R"({"data": {"batch_size": 16}, "strategy": {"build_strategy": {"reduce_strategy": "Reduce"}, "nccl_comm_num": 2}})");
}

TEST_CASE("a budget is a time with a unit") {
  CHECK(parse_duration("--budget", "90") == 90);
  CHECK(parse_duration("--budget", "3m") == 180);
  CHECK(parse_duration("--budget", "1.5h") == 5400);
  for (const std::string bad : {"", "3x", "m", "0s", "-1m", "25h", "nan"})
    CHECK_THROWS_AS(parse_duration("--budget", bad), Error);
}

}  // namespace
}  // namespace fleetrun::launch::tune_table_test
