#include "launch/page/history.h"

#include <cmath>

#include <doctest/doctest.h>

namespace fleetrun::launch::history_test {
namespace {

TEST_CASE("a history has a column per name and a row per complete line; an empty cell is no number") {
  const History history = parse_history("step,loss,test_loss\n5,1.5,\n10,,0.5\n15,2");
  REQUIRE(history.find("loss") != nullptr);
  CHECK(*history.find("step") == std::vector<double>{5, 10});
  CHECK(history.find("loss")->at(0) == 1.5);
  CHECK(std::isnan(history.find("loss")->at(1)));
  CHECK(history.find("test_loss")->at(1) == 0.5);
  CHECK(history.find("other") == nullptr);
}

TEST_CASE("a text without steps is no history") {
  for (const char* text : {"", "step,loss", "a,b\n1,2\n", "\n\n"}) CHECK(parse_history(text).empty());
}

}  // namespace
}  // namespace fleetrun::launch::history_test
