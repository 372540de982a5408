#include "launch/supervise/exit_cause.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>

namespace fleetrun::launch::exit_cause_test {
namespace {

TEST_CASE("docs/exit-codes.md has the row of every cause") {
  std::ifstream file(FLEETRUN_SOURCE_DIR "/docs/exit-codes.md");
  std::ostringstream text;
  text << file.rdbuf();
  REQUIRE(!exit_causes().empty());
  for (const ExitCause& row : exit_causes()) {
    const std::string code = row.exit_code ? std::to_string(*row.exit_code) : "of the event";
    const std::string wanted =
        fmt::format("\n| `{}` | {} | {} | {} |\n", row.name, code, row.restarts ? "yes" : "no", row.meaning);
    CAPTURE(wanted);
    CHECK(text.str().find(wanted) != std::string::npos);
  }
}

TEST_CASE("every cause has a name of its own, and its own row") {
  std::set<std::string_view> names;
  for (const ExitCause& row : exit_causes()) CHECK(names.insert(row.name).second);
  CHECK(facts_of(Cause::finished).name == "finished");
  CHECK(facts_of(Cause::early_exit).name == "early_exit");
}

}  // namespace
}  // namespace fleetrun::launch::exit_cause_test
