#include "job/aliases.h"

#include <doctest/doctest.h>

#include "job/job_text.h"

namespace fleetrun::job::aliases_test {
namespace {

TEST_CASE("an alias fills the key that it stands for, with a note") {
  const ParsedJob job = parse(
      good_job(R"("strategy": {"thread_num": 3, "BuildStrategy": {"gradient_scale_strategy": "One"}})"));
  CHECK(job.spec.strategy.execution_strategy.num_threads == 3);
  CHECK(job.spec.strategy.build_strategy.gradient_scale_strategy == GradientScale::One);
  CHECK(job.notes ==
        std::vector<std::string>{"strategy.BuildStrategy is taken as strategy.build_strategy",
                                 "strategy.thread_num is taken as strategy.execution_strategy.num_threads"});
}

TEST_CASE("on the command line, too, where it wins over the key in the file") {
  const std::string job = good_job(R"("strategy": {"execution_strategy": {"num_threads": 2}})");
  CHECK(parse(job, {"strategy.thread_num=4"}).spec.strategy.execution_strategy.num_threads == 4);
  CHECK(parse(job, {"strategy.BuildStrategy.gradient_scale_strategy=One"})
            .spec.strategy.build_strategy.gradient_scale_strategy == GradientScale::One);
}

TEST_CASE("a key and its alias together are a problem") {
  CHECK(
      complaint(good_job(R"("strategy": {"thread_num": 3, "execution_strategy": {"num_threads": 2}})")) ==
      "a.json:4:28: strategy.thread_num: found an alias of strategy.execution_strategy.num_threads, wanted one of the "
      "two; the other is at a.json:4:69");
}

TEST_CASE("a switch that has no effect says so") {
  CHECK(parse(good_job(R"("strategy": {"a_sync": false})")).notes ==
        std::vector<std::string>{"strategy.a_sync has no effect in collective mode"});
  CHECK(parse(good_job(R"("strategy": {"cudnn_batchnorm_spatial_persistent": false})")).notes ==
        std::vector<std::string>{"strategy.cudnn_batchnorm_spatial_persistent has no effect on the CPU"});
}

}  // namespace
}  // namespace fleetrun::job::aliases_test
