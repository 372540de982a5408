#include "comm/rendezvous/exchange.h"

#include <doctest/doctest.h>

#include <mutex>

#include "base/error/error.h"
#include "comm/rendezvous/memory_store.h"
#include "support/run_world.h"

namespace fleetrun::comm::exchange_test {
namespace {

using namespace std::chrono_literals;
using testing::run_ranks;

// What each rank's call ended with: "" or the error's words.
std::vector<std::string> endings(int size, const std::function<void(int rank)>& body) {
  std::vector<std::string> words(static_cast<std::size_t>(size));
  run_ranks(size, [&](int rank) {
    try {
      body(rank);
    } catch (const Error& error) {
      words[static_cast<std::size_t>(rank)] = std::to_string(error.exit_code()) + " " + error.message();
    }
  });
  return words;
}

TEST_CASE("every rank gets the values of all, by rank") {
  MemoryStore store;
  std::vector<std::vector<std::string>> got(4);
  run_ranks(4, [&](int rank) {
    got[static_cast<std::size_t>(rank)] =
        exchange({store, rank, 4}, "names", std::string(static_cast<std::size_t>(rank), 'x'), Deadline(10s));
  });
  for (const auto& values : got) CHECK(values == std::vector<std::string>{"", "x", "xx", "xxx"});
}

TEST_CASE("ranks that do not come are named, all of them") {
  MemoryStore store;
  for (const char* rank : {"2", "4"}) store.set(std::string("exchange/names/") + rank, "value");
  CHECK_THROWS_WITH_AS(exchange({store, 0, 5}, "names", "value", Deadline(50ms)),
                       "rank 0 waited 0.05 s for rank 1, 3 to bring \"names\"", Error);
}

TEST_CASE("ranks with the same facts agree") {
  MemoryStore store;
  CHECK_NOTHROW(run_ranks(3, [&](int rank) {
    agree({store, rank, 3}, "fingerprint", {{"program", "a41f"}, {"world size", "3"}, {"", "7:x"}},
          Deadline(10s));
  }));
}

TEST_CASE("every rank learns the first fact that differs, with both values and whose they are") {
  MemoryStore store;
  const auto words = endings(3, [&](int rank) {
    agree({store, rank, 3}, "fingerprint",
          {{"program", "a41f"},
           {"layout", rank == 2 ? "blocked 8" : "blocked 16"},
           {"seed", rank == 2 ? "1" : "2"}},
          Deadline(10s));
  });
  for (const std::string& each : words)
    CHECK(each == "76 ranks differ in layout: rank 0 has blocked 16, rank 2 has blocked 8");
}

TEST_CASE("a rank with other names or fewer facts differs too") {
  MemoryStore store;
  CHECK(endings(2, [&](int rank) {
          const Facts facts = {{"program", "a41f"}, {"layout", "x"}};
          agree({store, rank, 2}, "fewer", rank == 0 ? facts : Facts{facts[0]}, Deadline(10s));
        })[1] == "76 ranks differ in fact 2: rank 0 has layout x, rank 1 has no such fact");
  CHECK(endings(2, [&](int rank) {
          agree({store, rank, 2}, "other", {{rank == 0 ? "old" : "new", "x"}}, Deadline(10s));
        })[0] == "76 ranks differ in fact 1: rank 0 has old x, rank 1 has new x");
}

TEST_CASE("states are collected of the ranks that answer, also when the deadline has passed") {
  MemoryStore store;
  store.set("exchange/call/2", "step 3");
  const auto states = collect_states({store, 0, 3}, "call", "step 4", Deadline(20ms));
  CHECK(states[0] == "step 4");
  CHECK(states[1] == std::nullopt);
  CHECK(states[2] == "step 3");
}

// A store that has gone away.
struct LostStore : Store {
  void set(const std::string&, const std::string&) override { throw Error(ErrorKind::temporary, "lost"); }
  std::string get(const std::string&, Deadline) override { throw Error(ErrorKind::temporary, "lost"); }
  std::optional<std::string> look(const std::string&) override { throw Error(ErrorKind::temporary, "lost"); }
};

TEST_CASE("without a store no states are collected") {
  LostStore store;
  const auto states = collect_states({store, 0, 2}, "call", "step 4", Deadline(10s));
  CHECK(states == std::vector<std::optional<std::string>>{std::nullopt, std::nullopt});
}

TEST_CASE("an exchange through a lost store says so") {
  LostStore store;
  CHECK_THROWS_WITH_AS(exchange({store, 0, 2}, "names", "", Deadline(10s)), "lost", Error);
}

}  // namespace
}  // namespace fleetrun::comm::exchange_test
