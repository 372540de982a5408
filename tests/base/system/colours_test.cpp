#include "base/system/colours.h"

#include <doctest/doctest.h>

namespace fleetrun::colours_test {
namespace {

bool wanted(const std::vector<std::string>& variables, bool is_terminal = true) {
  Environment environment;
  environment.set("TERM", "xterm");
  for (const std::string& one : variables) {
    const auto equals = one.find('=');
    environment.set(one.substr(0, equals), one.substr(equals + 1));
  }
  return wants_colours(environment, is_terminal);
}

TEST_CASE("a terminal has colours, a file has none") {
  CHECK(wanted({}));
  CHECK_FALSE(wanted({}, false));
  CHECK_FALSE(wanted({"TERM=dumb"}));
  CHECK_FALSE(wants_colours(Environment(), true));
}

TEST_CASE("NO_COLOR wins over CLICOLOR_FORCE, and that over CLICOLOR and over what the output is") {
  CHECK_FALSE(wanted({"NO_COLOR=1"}));
  CHECK(wanted({"NO_COLOR="}));
  CHECK_FALSE(wanted({"CLICOLOR=0"}));
  CHECK(wanted({"CLICOLOR=1"}));
  CHECK_FALSE(wanted({"CLICOLOR=1"}, false));
  CHECK(wanted({"CLICOLOR_FORCE=1", "CLICOLOR=0", "TERM=dumb"}, false));
  CHECK_FALSE(wanted({"CLICOLOR_FORCE=0"}, false));
  CHECK_FALSE(wanted({"NO_COLOR=1", "CLICOLOR_FORCE=1"}));
}

TEST_CASE("of a problem the first line is red, and hints are cyan") {
  CHECK(colour_problem("p: error: no\n  while trying\n  hint: try\n") ==
        "\x1b[31mp: error: no\x1b[0m\n  while trying\n\x1b[36m  hint: try\x1b[0m\n");
  CHECK(colour_problem("no end") == "\x1b[31mno end\x1b[0m");
  CHECK(colour_problem("").empty());
}

}  // namespace
}  // namespace fleetrun::colours_test
