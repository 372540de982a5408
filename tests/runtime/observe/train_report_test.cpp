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
  CHECK_FALSE(json.contains("planned_steps"));
  CHECK_FALSE(json.contains("resume"));
}

TEST_CASE("a training that was stopped: an epoch in part, and the score of an earlier one") {
  TrainReport report = example();
  report.stopped = true;
  report.whole_epochs = 4;
  report.planned_epochs = 30;
  report.planned_steps = 9000;
  report.test_epochs = 3;
  report.checkpoint = "/log/checkpoint/000001-step-1250";
  report.resume = report.checkpoint;
  CHECK(describe(report) ==
        "trained 1250 of 9000 steps (4 of 30 epochs) on 2 ranks in 31.2 s: 8123.4 images/s, "
        "test accuracy 0.99000 after 3 epochs");
  const auto json = nlohmann::json::parse(to_json(report));
  CHECK(json["epochs"] == 5);
  CHECK(json["whole_epochs"] == 4);
  CHECK(json["test_epochs"] == 3);
  CHECK(json["planned_epochs"] == 30);
  CHECK(json["planned_steps"] == 9000);
  CHECK(json["checkpoint"] == report.checkpoint);
  CHECK(json["resume"] == report.checkpoint);
}

TEST_CASE("the summary says on which data") {
  TrainReport report = example();
  report.classes = 10;
  report.train_samples = 1500;
  CHECK(describe_data(report) == "data: 1500 images of 10 classes");
  report.classes = 1;
  report.test_samples = 300;
  CHECK(describe_data(report) == "data: 1500 images of 1 class, 300 images for the test");
}

TEST_CASE("the best epoch and the end by early stopping have lines of their own") {
  CHECK(describe_best(example()) == "");
  TrainReport report = example();
  report.best = BestWeights{{job::Metric::acc1, 0.9375, 4, 1250}, "/data/best.safetensors"};
  report.early_end = "stopped after epoch 7: loss did not improve in 3 evaluations; best epoch 4";
  CHECK(describe_best(report) ==
        "stopped after epoch 7: loss did not improve in 3 evaluations; best epoch 4\n"
        "best epoch 4: acc1 0.93750, weights: /data/best.safetensors\n");
  const auto json = nlohmann::json::parse(to_json(report));
  CHECK(json["best"]["epoch"] == 4);
  CHECK(json["best"]["metric"] == "acc1");
  CHECK(json["best"]["value"] == 0.9375);
  CHECK(json["best"]["file"] == "/data/best.safetensors");
  CHECK(json["early_stopping"] == report.early_end);
}

}  // namespace
}  // namespace fleetrun::runtime::train_report_test
