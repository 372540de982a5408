#include "runtime/observe/train_report.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace fleetrun::runtime::train_report_test {
namespace {

TrainReport example() {
  return {.world_size = 2,
          .epochs = 5,
          .whole_epochs = 5,
          .steps = 1250,
          .test_accuracy = 0.99,
          .train_seconds = 31.2,
          .images_per_second = 8123.4};
}

TEST_CASE("a training that came to its end") {
  CHECK(describe(example()) ==
        "trained 5 epochs, 1250 steps on 2 ranks in 31.2 s: 8123.4 images/s, test accuracy 0.99000");
  const auto json = nlohmann::json::parse(to_json(example()));
  CHECK(json["epochs"] == 5);
  CHECK_FALSE(json.contains("whole_epochs"));
  CHECK_FALSE(json.contains("test_epochs"));
}

TEST_CASE("a training that was stopped: an epoch in part, and the score of an earlier one") {
  TrainReport report = example();
  report.stopped = true;
  report.whole_epochs = 4;
  report.test_epochs = 3;
  CHECK(describe(report) ==
        "trained 5 epochs (the last one in part), 1250 steps on 2 ranks in 31.2 s: 8123.4 images/s, "
        "test accuracy 0.99000 after 3 epochs");
  const auto json = nlohmann::json::parse(to_json(report));
  CHECK(json["epochs"] == 5);
  CHECK(json["whole_epochs"] == 4);
  CHECK(json["test_epochs"] == 3);
}

}  // namespace
}  // namespace fleetrun::runtime::train_report_test
