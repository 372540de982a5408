#include "job/checks/check_class_balance.h"

#include <doctest/doctest.h>

#include "job/job_text.h"

namespace fleetrun::job::check_class_balance_test {
namespace {

ClassWeights weights(const std::string& value) {
  return parse(good_job(), {"data.class_weights=" + value}).spec.data.class_weights.value();
}

TEST_CASE("class weights are balanced, a list, or an object by class names") {
  CHECK(weights("balanced") == ClassWeights{.balanced = true});
  CHECK(weights("[1,2,3,4,5,6,7,8,9,0.5]") == ClassWeights{.by_number = {1, 2, 3, 4, 5, 6, 7, 8, 9, 0.5}});
  CHECK(weights("{\"3\": 2.5}") == ClassWeights{.by_name = {{"3", 2.5}}});
  CHECK_FALSE(parse(good_job()).spec.data.class_weights.has_value());
}

TEST_CASE("other class weights are refused") {
  const std::string start = "command line: data.class_weights";
  const std::string wanted =
      ", wanted \"balanced\", a list of numbers above 0 or an object of numbers above 0";
  const auto of = [](const std::string& value) {
    return complaint(good_job(), {"data.class_weights=" + value});
  };
  CHECK(of("even") == start + ": found \"even\"" + wanted);
  CHECK(of("2") == start + ": found 2" + wanted);
  CHECK(of("[]") == start + ": found a list of 0" + wanted);
  CHECK(of("{}") == start + ": found an object" + wanted);
  CHECK(of("[1, 0]") == start + "[1]: found 0, wanted a number above 0");
  CHECK(of("{\"cat\": -1}") == start + ".cat: found -1, wanted a number above 0");
  CHECK(of("[1, 2]") == start + ": found a list of 2, wanted 10: the model has 10 classes");
}

TEST_CASE("a balanced sampler shuffles, and balances alone") {
  CHECK(parse(good_job(), {"data.sampler=balanced"}).spec.data.sampler == Sampler::balanced);
  CHECK(
      complaint(good_job(), {"data.sampler=balanced", "data.shuffle=false"}) ==
      "command line: data.sampler: found \"balanced\" beside data.shuffle false, wanted data.shuffle true: it "
      "draws at random");
  CHECK(parse(good_job(), {"data.sampler=balanced", "data.class_weights=balanced"}).notes ==
        std::vector<std::string>{
            "data.sampler and data.class_weights are both \"balanced\": each corrects the same "
            "imbalance, so rare classes count too much"});
}

}  // namespace
}  // namespace fleetrun::job::check_class_balance_test
