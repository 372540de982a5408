#include "job/parse_job.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::job::parse_job_test {
namespace {

constexpr std::string_view kSmallest = R"({
  "model": {"name": "lenet"},
  "data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 28, 28], "classes": 10}}
})";

// The value and origin that `fleetrun config` shows for a key; empty when it shows none.
std::pair<std::string, std::string> shown(const ParsedJob& job, const std::string& key) {
  for (const KeyValue& value : job.values)
    if (value.key == key) return {value.value, value.origin};
  return {};
}

using Shown = std::pair<std::string, std::string>;

TEST_CASE("the smallest job has the defaults of the documentation") {
  const JobSpec spec = parse_job_text(kSmallest, "/jobs/a.json", {}).spec;
  CHECK(spec.file == "/jobs/a.json");
  CHECK(spec.model.name == ModelName::lenet);
  CHECK_FALSE(spec.model.class_dim.has_value());
  CHECK(spec.data.train.format == DataFormat::synthetic);
  CHECK(spec.data.train.shape == std::array{1, 28, 28});
  CHECK(spec.data.train.channels == 1);
  CHECK(spec.data.train.mean == std::vector<double>{0});
  CHECK(spec.data.train.deviation == std::vector<double>{255});
  CHECK_FALSE(spec.data.test.has_value());
  CHECK(spec.data.batch_size == 32);
  CHECK(spec.optimizer.name == OptimizerName::momentum);
  CHECK(spec.optimizer.learning_rate.base == 0.1);
  CHECK(spec.train.epochs == 1);
  CHECK_FALSE(spec.train.max_steps.has_value());
  CHECK(spec.output.dir == "/jobs/output");
}

TEST_CASE("every key says where its value comes from") {
  const ParsedJob job =
      parse_job_text(R"({
  "model": {"name": "lenet"},
  "data": {"train": {"format": "idx", "images": "i.gz", "labels": "/data/l.gz"}, "batch_size": 8},
  "optimizer": {"learning_rate": 0.05},
  "strategy": {"thread_num": 2, "BuildStrategy": {"gradient_scale_strategy": "One"}},
  "env": {"NCCL_DEBUG": "INFO"}
})",
                     "/jobs/a.json", {"data.batch_size=16", "env.OMP_NUM_THREADS=1", "device=cpu"});
  CHECK(shown(job, "data.batch_size") == Shown{"16", "command line"});
  CHECK(shown(job, "data.train.images") == Shown{"\"/jobs/i.gz\"", "/jobs/a.json:3:49"});
  CHECK(shown(job, "data.train.labels") == Shown{"\"/data/l.gz\"", "/jobs/a.json:3:67"});
  CHECK(shown(job, "data.train.mean") == Shown{"[0]", "default"});
  CHECK(shown(job, "data.test") == Shown{"null", "default: none, no evaluation"});
  CHECK(shown(job, "optimizer.learning_rate.base") == Shown{"0.05", "/jobs/a.json:4:34"});
  CHECK(shown(job, "optimizer.learning_rate.name") == Shown{"\"constant\"", "default"});
  CHECK(shown(job, "strategy.execution_strategy.num_threads") ==
        Shown{"2", "alias strategy.thread_num, /jobs/a.json:5:30"});
  CHECK(shown(job, "strategy.build_strategy.gradient_scale_strategy") ==
        Shown{"\"One\"", "alias strategy.BuildStrategy, /jobs/a.json:5:78"});
  CHECK(shown(job, "env.NCCL_DEBUG") == Shown{"\"INFO\"", "/jobs/a.json:6:25"});
  CHECK(shown(job, "env.OMP_NUM_THREADS") == Shown{"\"1\"", "command line"});
  CHECK(shown(job, "device") == Shown{"\"cpu\"", "command line"});
  CHECK(shown(job, "model.class_dim") == Shown{"null", "default: from the data set"});
  CHECK(shown(job, "model.hidden") == Shown{});  // not used by lenet
  CHECK(shown(job, "strategy.auto") == Shown{"false", "default"});
  CHECK(job.notes ==
        std::vector<std::string>{"strategy.BuildStrategy is taken as strategy.build_strategy",
                                 "strategy.thread_num is taken as strategy.execution_strategy.num_threads"});
  CHECK(job.spec.strategy.build_strategy.gradient_scale_strategy == GradientScale::One);
}

}  // namespace
}  // namespace fleetrun::job::parse_job_test
