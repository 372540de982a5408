#include "launch/cli/flags/log_rule.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::launch::log_rule_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a log rule is a pattern and a time") {
  const LogRule rule = parse_log_rule("--log_rule", R"(loss within \d+ within 1.5s)");
  CHECK(rule.pattern.is_in("the loss within 12"));
  CHECK_FALSE(rule.pattern.is_in("the loss"));
  CHECK(rule.within == Clock::duration(1500ms));
  CHECK(parse_log_rule("--log_rule", "x within 60").within == Clock::duration(60s));
}

TEST_CASE("what is not a rule is refused with the text that was given") {
  for (const char* text :
       {"", "loss", "loss within", "loss within abc", "loss within 0s", "( within 5s", " within 5s"})
    CHECK_THROWS_AS(parse_log_rule("--log_rule", text), Error);
  CHECK_THROWS_WITH(parse_log_rule("--log_rule", "loss"),
                    "--log_rule is \"loss\", must be \"REGEX within SECONDSs\"");
  CHECK_THROWS_WITH(parse_log_rule("--log_rule", "lo(ss within 5s"),
                    "--log_rule is \"lo(ss\", not a regular expression: missing ): lo(ss");
}

}  // namespace
}  // namespace fleetrun::launch::log_rule_test
