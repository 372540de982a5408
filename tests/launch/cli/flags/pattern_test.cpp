#include "launch/cli/flags/pattern.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "support/processor_time.h"

namespace fleetrun::launch::pattern_test {
namespace {

bool is_in(const char* pattern, const std::string& line) { return Pattern("--grep", pattern).is_in(line); }

TEST_CASE("a pattern is looked for anywhere in a line") {
  CHECK(is_in("loss: \\d+", "step 3 loss: 12"));
  CHECK_FALSE(is_in("loss: \\d+", "step 3 loss: x"));
  CHECK(is_in("(?i)ERROR", "an error"));
  CHECK(is_in("^a.*b$", "a - b"));
  CHECK(is_in("", ""));
}

TEST_CASE("lines may be long, and letters more than a byte") {
  CHECK_FALSE(is_in("a.*b", std::string(60000, 'a')));
  CHECK(is_in("a.*b", std::string(1000000, 'a') + "b"));
  CHECK(is_in("^caf.$", "caf\xc3\xa9"));
  CHECK(is_in("a.b",
              "a\xff"
              "b"));
}

// A backtracking engine takes longer than the universe is old.
TEST_CASE("no pattern and no line take long") {
  const double seconds = testing::processor_seconds_of([] {
    CHECK_FALSE(is_in("(x+x+)+y", std::string(200, 'x')));
    CHECK_FALSE(is_in("(a*)*(a*)*b", std::string(10000, 'a')));
  });
  CHECK(seconds < 1);
}

TEST_CASE("what is not a pattern is refused: where it was given, what is wrong, and at which character") {
  const auto refuses = [](const char* pattern, const std::string& message) {
    CAPTURE(pattern);
    CHECK_THROWS_WITH(
        Pattern("--grep", pattern),
        ("--grep is \"" + std::string(pattern) + "\", not a regular expression: " + message).c_str());
  };
  refuses("(a", "missing ): (a");
  refuses("ab[c", "missing ]: [c, at character 3");
  refuses("a**", "bad repetition operator: **, at character 2");
  refuses("*a", "no argument for repetition operator: *, at character 1");
  refuses("(a)\\1", "back references like \\1 are not supported, at character 4");
  refuses("x(?=a)", "look-around like (?= is not supported, at character 2");
  refuses("x(?<!a)", "look-around like (?< is not supported, at character 2");
  CHECK_THROWS_AS(Pattern("--grep", "((a{500}){500}){500}"), Error);
  CHECK_THROWS_WITH(Pattern("--grep", "a\xff"),
                    "--grep is \"a\uFFFD\", not a regular expression: invalid UTF-8");
}

}  // namespace
}  // namespace fleetrun::launch::pattern_test
