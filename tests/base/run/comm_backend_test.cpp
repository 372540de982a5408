#include "base/run/comm_backend.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

namespace fleetrun::comm_backend_test {
namespace {

TEST_CASE("every backend is parsed by its name, and no other name is") {
  for (const CommBackendRow& row : comm_backends()) {
    CHECK(parse_comm_backend(row.name) == row.backend);
    CHECK(describe(row.backend) == row.name);
    CHECK(row_of(row.backend).title == row.title);
  }
  CHECK(parse_comm_backend("auto") == CommBackend::automatic);
  CHECK(describe(CommBackend::automatic) == "auto");
  CHECK_FALSE(parse_comm_backend("mpi"));
}

TEST_CASE("some backend reaches ranks of any hosts, so that auto always finds one") {
  bool found = false;
  for (const CommBackendRow& row : comm_backends()) found = found || row.reach == Reach::any_host;
  CHECK(found);
}

// "| `shm` | shared memory | one host |"
std::string row_in_docs(const CommBackendRow& row) {
  const std::string reach = row.reach == Reach::one_host ? "one host" : "any hosts";
  return std::string("\n| `") + row.name + "` | " + row.title + " | " + reach + " |\n";
}

TEST_CASE("docs/inside-a-step.md lists every backend") {
  std::ifstream file(FLEETRUN_SOURCE_DIR "/docs/inside-a-step.md");
  std::ostringstream text;
  text << file.rdbuf();
  for (const CommBackendRow& row : comm_backends()) {
    INFO(row.name);
    CHECK(text.str().find(row_in_docs(row)) != std::string::npos);
  }
}

}  // namespace
}  // namespace fleetrun::comm_backend_test
