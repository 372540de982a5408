#include "base/run/predict_request.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::predict_request_test {
namespace {

TEST_CASE("a request to predict survives the command line of the worker") {
  const PredictRequest all = {.top = 5, .batch_size = 16, .ranks = 2, .format = PredictFormat::json};
  CHECK(write_predict_request(all) == "top=5,batch_size=16,ranks=2,format=json");
  CHECK(parse_predict_request(write_predict_request(all)) == all);
  CHECK(parse_predict_request(write_predict_request({})) == PredictRequest{});
}

TEST_CASE("a request to predict that makes no sense is refused with its part") {
  for (const std::string bad : {"top", "top=x", "top=-1", "ranks=-1", "format=xml", "fast=1"})
    CHECK_THROWS_AS(parse_predict_request(bad), Error);
}

}  // namespace
}  // namespace fleetrun::predict_request_test
