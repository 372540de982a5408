#include "comm/gloo.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "comm/communicator_cases.h"
#include "comm/memory_store.h"
#include "support/run_world.h"

namespace fleetrun::comm {
namespace {

using namespace std::chrono_literals;
using testing::run_world;

// Ranks as threads of this process that meet in a store in memory, with connections over loopback.
struct GlooWorld {
  GlooOptions options_of(int rank) {
    return {.party = {store, rank, size},
            .key = key,
            .join_deadline = 20s,
            .collective_deadline = collective_deadline};
  }
  testing::MakeCommunicator make() {
    return [this](int rank) { return make_gloo(options_of(rank)); };
  }

  int size = 2;
  std::chrono::milliseconds collective_deadline = 20s;
  MemoryStore store;
  RunKey key = make_run_key();
};

TEST_CASE("gloo: every collective, dtype and size") {
  for (const int size : {1, 2, 3, 4}) {
    CAPTURE(size);
    GlooWorld world{.size = size};
    run_world(size, world.make(), testing::run_all_cases);
  }
}

}  // namespace
}  // namespace fleetrun::comm
