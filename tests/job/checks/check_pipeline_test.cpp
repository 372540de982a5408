#include "job/checks/check_pipeline.h"

#include <doctest/doctest.h>

#include "job/job_text.h"

namespace fleetrun::job::check_pipeline_test {
namespace {

std::string complaint_about(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), {"strategy.pipeline=true", "data.batch_size=12"});
  return complaint(good_job(), overrides);
}

const std::string kStart = "command line: strategy.";

TEST_CASE("micro-batches make up a batch") {
  const std::string size = "strategy.pipeline_configs.micro_batch_size=";
  const std::string steps = "strategy.pipeline_configs.accumulate_steps=";
  CHECK(complaint_about({}) == "");
  CHECK(complaint_about({size + "3"}) == "");
  CHECK(complaint_about({steps + "6"}) == "");
  CHECK(complaint_about({size + "3", steps + "4"}) == "");
  CHECK(complaint_about({size + "5"}) ==
        kStart +
            "pipeline_configs.micro_batch_size: found 5, wanted a divisor of data.batch_size, which is 12");
  CHECK(complaint_about({steps + "8"}) ==
        kStart +
            "pipeline_configs.accumulate_steps: found 8, wanted a divisor of data.batch_size, which is 12");
  CHECK(complaint_about({size + "3", steps + "2"}) ==
        kStart +
            "pipeline_configs.micro_batch_size: found 3 times accumulate_steps 2, wanted a product of 12, "
            "which is data.batch_size");
  CHECK(complaint(good_job(), {"data.batch_size=12", size + "5"}) == "");
}

TEST_CASE("a number of stages is for a pipeline") {
  const std::string stages = "strategy.hybrid_configs.pp_degree=";
  CHECK(complaint_about({stages + "2"}) == "");
  CHECK(complaint(good_job(), {stages + "1"}) == "");
  CHECK(
      complaint(good_job(), {stages + "2"}) ==
      kStart +
          "hybrid_configs.pp_degree: found 2 without strategy.pipeline, wanted 1, or strategy.pipeline true");
}

TEST_CASE("strategies that have no meaning in a pipeline are refused by name") {
  CHECK(complaint_about({"strategy.gradient_merge=true"}) ==
        kStart +
            "gradient_merge: found true beside strategy.pipeline, wanted false: a larger "
            "strategy.pipeline_configs.accumulate_steps merges the gradients of more micro-batches");
  CHECK(complaint_about({"strategy.fp16_allreduce=true"}) ==
        kStart +
            "fp16_allreduce: found true beside strategy.pipeline, wanted false: the ranks have different "
            "layers, so they sum no gradients");
  CHECK(
      complaint_about({"strategy.sync_batch_norm=true"}) ==
      kStart +
          "sync_batch_norm: found true beside strategy.pipeline, wanted false: a batch norm is on one rank; "
          "a larger strategy.pipeline_configs.micro_batch_size gives it more samples");
  CHECK(complaint_about({"strategy.amp=true"}) ==
        kStart + "amp: found true beside strategy.pipeline, wanted false: the stages compute in f32");
  CHECK(complaint_about({"strategy.build_strategy.reduce_strategy=Reduce"}) ==
        kStart +
            "build_strategy.reduce_strategy: found Reduce beside strategy.pipeline, wanted AllReduce: each "
            "parameter is on one rank already");
}

}  // namespace
}  // namespace fleetrun::job::check_pipeline_test
