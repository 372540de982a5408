#include "job/checks/check_dgc.h"

#include <doctest/doctest.h>

#include "job/job_text.h"

namespace fleetrun::job::check_dgc_test {
namespace {

std::string complaint_beside_dgc(std::vector<std::string> overrides) {
  overrides.emplace_back("strategy.dgc=true");
  return complaint(good_job(), overrides);
}

TEST_CASE("dgc is for momentum") {
  CHECK(complaint_beside_dgc({}) == "");
  CHECK(
      complaint_beside_dgc({"optimizer.name=sgd"}) ==
      "command line: strategy.dgc: found true beside optimizer.name \"sgd\", wanted optimizer.name \"momentum\"");
  CHECK(
      complaint_beside_dgc({"strategy.lars=true"}) ==
      "command line: strategy.dgc: found true beside strategy.lars, wanted strategy.lars false and optimizer.name "
      "\"momentum\"");
}

TEST_CASE("what else changes the gradients that are summed is refused beside dgc") {
  CHECK(complaint_beside_dgc({"strategy.amp=true"}) ==
        "command line: strategy.amp: found true beside strategy.dgc, wanted one of the two: dgc sends f32");
  CHECK(complaint_beside_dgc({"strategy.fp16_allreduce=true"}) ==
        "command line: strategy.fp16_allreduce: found true beside strategy.dgc, wanted false: dgc sends f32");
  CHECK(
      complaint_beside_dgc({"strategy.gradient_merge=true"}) ==
      "command line: strategy.gradient_merge: found true beside strategy.dgc, wanted one of the two: dgc keeps gradients "
      "for later steps itself");
  CHECK(
      complaint_beside_dgc({"strategy.build_strategy.reduce_strategy=Reduce"}) ==
      "command line: strategy.build_strategy.reduce_strategy: found \"Reduce\" beside strategy.dgc, wanted \"AllReduce\": "
      "each rank updates all parameters");
  CHECK(complaint_beside_dgc({"strategy.localsgd=true"}) ==
        "command line: strategy.dgc: found true beside strategy.localsgd, wanted one of the two");
}

TEST_CASE("beside dgc, gradients are clipped by their norms or not at all") {
  CHECK(complaint_beside_dgc({"optimizer.gradient_clip.by=norm", "optimizer.gradient_clip.limit=1"}) == "");
  CHECK(
      complaint_beside_dgc({"optimizer.gradient_clip.by=value", "optimizer.gradient_clip.limit=1"}) ==
      "command line: optimizer.gradient_clip.by: found \"value\" beside strategy.dgc, wanted \"norm\" or \"none\": each "
      "rank clips its own gradients");
}

}  // namespace
}  // namespace fleetrun::job::check_dgc_test
