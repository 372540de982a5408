#include "job/checks/check_local_training.h"

#include <doctest/doctest.h>

#include "job/job_text.h"

namespace fleetrun::job::check_local_training_test {
namespace {

std::string complaint_about(const std::vector<std::string>& overrides) {
  return complaint(good_job(), overrides);
}

TEST_CASE("localsgd and adaptive_localsgd are for momentum and sgd") {
  for (const std::string name : {"localsgd", "adaptive_localsgd"}) {
    const std::string on = "strategy." + name + "=true";
    CHECK(complaint_about({on}) == "");
    CHECK(complaint_about({on, "optimizer.name=sgd"}) == "");
    CHECK(complaint_about({on, "optimizer.name=adam"}) ==
          "command line: strategy." + name +
              ": found true beside optimizer.name \"adam\", wanted optimizer.name \"momentum\" or \"sgd\"");
    CHECK(
        complaint_about({on, "strategy.lars=true"}) ==
        "command line: strategy." + name +
            ": found true beside strategy.lars, wanted strategy.lars false and optimizer.name \"momentum\" or \"sgd\"");
  }
}

TEST_CASE("what changes how gradients are summed is refused beside localsgd") {
  CHECK(
      complaint_about({"strategy.localsgd=true", "strategy.fp16_allreduce=true"}) ==
      "command line: strategy.fp16_allreduce: found true beside strategy.localsgd, wanted false: localsgd sums no "
      "gradients");
  CHECK(
      complaint_about({"strategy.localsgd=true", "strategy.gradient_merge=true",
                       "strategy.gradient_merge_configs.k_steps=2"}) ==
      "command line: strategy.gradient_merge: found true beside strategy.localsgd, wanted one of the two: both "
      "communicate once in k_steps steps");
  CHECK(
      complaint_about({"strategy.localsgd=true", "strategy.build_strategy.reduce_strategy=Reduce"}) ==
      "command line: strategy.build_strategy.reduce_strategy: found \"Reduce\" beside strategy.localsgd, wanted "
      "\"AllReduce\": each rank updates all parameters");
  CHECK(
      complaint_about({"strategy.localsgd=true", "strategy.adaptive_localsgd=true"}) ==
      "command line: strategy.adaptive_localsgd: found true beside strategy.localsgd, wanted one of the two: localsgd "
      "for a fixed number of steps");
}

}  // namespace
}  // namespace fleetrun::job::check_local_training_test
