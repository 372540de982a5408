#include "base/system/lost_text.h"

#include <memory>

#include <doctest/doctest.h>

namespace fleetrun::lost_text_test {
namespace {

TEST_CASE("at the start nothing is lost") { CHECK(std::make_unique<LostText>()->read().empty()); }

TEST_CASE("of a long text the last whole lines are kept") {
  const auto lost = std::make_unique<LostText>();
  const std::string line(1000, 'x');
  for (int i = 0; i < 10; ++i) lost->add(std::to_string(i) + line + "\n");
  CHECK(lost->read() == "6" + line + "\n7" + line + "\n8" + line + "\n9" + line + "\n");
}

TEST_CASE("of one line that is too long the end is kept") {
  const auto lost = std::make_unique<LostText>();
  lost->add(std::string(LostText::kBytes, 'a') + "end");
  CHECK(lost->read() == std::string(LostText::kBytes - 3, 'a') + "end");
}

TEST_CASE("text is forgotten up to a place, and later text stays") {
  const auto lost = std::make_unique<LostText>();
  const auto place = lost->add("old\n");
  lost->add("rank 0: error\n");
  lost->forget_before(place);
  CHECK(lost->read() == "rank 0: error\n");
}

}  // namespace
}  // namespace fleetrun::lost_text_test
