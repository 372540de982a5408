#include "comm/rendezvous/memory_store.h"

#include <doctest/doctest.h>

#include <thread>

#include "base/error/error.h"

namespace fleetrun::comm::memory_store_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a get waits for the set of another thread") {
  MemoryStore store;
  CHECK(store.look("key") == std::nullopt);
  std::thread other([&] { store.set("key", "value"); });
  CHECK(store.get("key", Deadline(10s)) == "value");
  other.join();
  CHECK(store.look("key") == "value");
}

TEST_CASE("a get that nobody answers names the key") {
  MemoryStore store;
  CHECK_THROWS_WITH_AS(store.get("key", Deadline(10ms)), "nobody set \"key\" within 0.01 s", Error);
}

}  // namespace
}  // namespace fleetrun::comm::memory_store_test
