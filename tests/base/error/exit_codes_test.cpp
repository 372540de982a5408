// docs/exit-codes.md describes every exit code of the table.
#include "base/error/exit_codes.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"

namespace fleetrun::exit_codes_test {
namespace {

std::string document() {
  std::ifstream file(FLEETRUN_SOURCE_DIR "/docs/exit-codes.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("docs/exit-codes.md has the row of every exit code") {
  const std::string text = document();
  REQUIRE(!exit_codes().empty());
  for (const ExitCode& row : exit_codes()) {
    const std::string wanted = fmt::format("\n| {} | {} | {} |\n", row.code, row.meaning, row.again);
    CAPTURE(wanted);
    CHECK(text.find(wanted) != std::string::npos);
  }
}

TEST_CASE("docs/exit-codes.md names the codes after which nothing starts again") {
  std::vector<int> codes;
  for (const ExitCode& row : exit_codes())
    if (row.repeats) codes.push_back(row.code);
  REQUIRE(codes.size() > 1);
  const int last = codes.back();
  codes.pop_back();
  const std::string wanted = fmt::format("unless the code is {} or {}.", fmt::join(codes, ", "), last);
  CAPTURE(wanted);
  CHECK(document().find(wanted) != std::string::npos);
}

TEST_CASE("exit codes ascend, and a kind of error has the code of its row") {
  for (std::size_t i = 1; i < exit_codes().size(); ++i)
    CHECK(exit_codes()[i - 1].code < exit_codes()[i].code);
  CHECK(Error(ErrorKind::config, "").exit_code() == 78);
  CHECK(Error(ErrorKind::not_found, "").exit_code() == 127);
}

}  // namespace
}  // namespace fleetrun::exit_codes_test
