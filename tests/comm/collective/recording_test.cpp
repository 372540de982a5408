// What communicators leave in the flight record.
#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/run/flight_record.h"
#include "comm/collective/collective.h"
#include "comm/collective/hierarchical.h"
#include "comm/collective/solo.h"
#include "comm/gloo/gloo.h"
#include "comm/rendezvous/memory_store.h"
#include "comm/shared/shared_memory.h"
#include "support/run_world.h"

namespace fleetrun::comm::recording_test {
namespace {

using namespace std::chrono_literals;
using testing::run_world;

// Of each rank; outlives the ranks.
struct Records {
  explicit Records(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) each.push_back(std::make_unique<FlightRecords>());
  }
  FlightRecords& of(int rank) { return *each[static_cast<std::size_t>(rank)]; }

  std::vector<std::unique_ptr<FlightRecords>> each;
};

void use_all_collectives(Communicator& comm) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<float> all(10 * ranks);
  std::vector<float> mine(10);
  comm.all_reduce({all.data(), all.size(), DType::f32}, ReduceOp::max);
  comm.reduce({all.data(), all.size(), DType::f32}, ReduceOp::min, 1);
  comm.broadcast({all.data(), all.size(), DType::f32}, 0);
  comm.reduce_scatter({all.data(), all.size(), DType::f32}, {mine.data(), 10, DType::f32}, ReduceOp::sum);
  comm.all_gather({mine.data(), 10, DType::f32}, {all.data(), all.size(), DType::f32});
  comm.barrier();
}

void check_history(FlightRecords& records, const std::vector<std::string>& wanted) {
  const auto histories = records.read();
  REQUIRE(histories.size() == 1);
  CHECK(histories[0].communicator == "mine");
  CHECK(histories[0].begun == wanted.size());
  CHECK(histories[0].ended == wanted.size());
  std::vector<std::string> found;
  for (const FlightEntry& entry : histories[0].entries) {
    found.push_back(entry.describe());
    CHECK(entry.end_ns >= entry.start_ns);
  }
  CHECK(found == wanted);
}

const std::vector<std::string> kOfTwo = {"all_reduce of 20 f32 (max)",
                                         "reduce of 20 f32 (min) to rank 1",
                                         "broadcast of 20 f32 from rank 0",
                                         "reduce_scatter of 20 f32 (sum)",
                                         "all_gather of 20 f32",
                                         "barrier"};

TEST_CASE("every backend notes each collective with its number, what it was, and that it ended") {
  Records records(2);
  const auto body = [&](Communicator& comm) {
    comm.record_in(records.of(comm.rank()), "mine");
    use_all_collectives(comm);
  };
  SUBCASE("threads") { run_world(2, body); }
  SUBCASE("gloo") {
    MemoryStore store;
    const RunKey key = make_run_key();
    run_world(
        2,
        [&](int rank) {
          return make_gloo({.party = {store, rank, 2}, .key = key});
        },
        body);
  }
  SUBCASE("shared memory") {
    MemoryStore store;
    run_world(
        2,
        [&](int rank) {
          return join_shared_memory({.party = {store, rank, 2}}).communicator;
        },
        body);
  }
  for (int rank = 0; rank < 2; ++rank) check_history(records.of(rank), kOfTwo);
}

TEST_CASE("hierarchical: its parts keep records of their own, under names that only their ranks share") {
  Records records(4);
  MemoryStore store;
  const RunKey key = make_run_key();
  const MakeCommunicator gloo = [&](const Party& party, const std::string& name) {
    return make_gloo({.party = party, .key = key, .name = name});
  };
  const auto make = [&](int rank) {
    return make_hierarchical({.party = {store, rank, 4}, .group_size = 2}, gloo);
  };
  run_world(4, make, [&](Communicator& comm) {
    comm.record_in(records.of(comm.rank()), "mine");
    float one = 1;
    comm.all_reduce({&one, 1, DType::f32}, ReduceOp::sum);
  });
  const auto names_of = [&](int rank) {
    std::string names;
    for (const FlightHistory& history : records.of(rank).read())
      names += fmt::format("{} {}/{}; ", history.communicator, history.ended, history.begun);
    return names;
  };
  CHECK(names_of(0) == "mine 1/1; mine, group 0 2/2; mine, places 0 1/1; ");
  CHECK(names_of(1) == "mine 1/1; mine, group 0 2/2; ");
  CHECK(names_of(2) == "mine 1/1; mine, group 1 2/2; mine, places 0 1/1; ");
}

TEST_CASE("a rank alone keeps a record too") {
  Records records(1);
  const auto solo = make_solo();
  solo->record_in(records.of(0), "mine");
  solo->barrier();
  check_history(records.of(0), {"barrier"});
}

TEST_CASE("a collective that fails stays open") {
  Records records(2);
  run_world(2, [&](Communicator& comm) {
    comm.record_in(records.of(comm.rank()), "mine");
    comm.barrier();
    if (comm.rank() == 1) return;
    try {
      comm.barrier();
    } catch (const Error&) {
      return;
    }
    throw std::runtime_error("nothing was thrown");
  });
  const auto history = records.of(0).read().at(0);
  CHECK(history.begun == 2);
  CHECK(history.ended == 1);
  CHECK(history.entries.back().end_ns == 0);
}

TEST_CASE("errors and the record call a collective by the same words") {
  std::vector<float> buffer(6);
  const BufferView view{buffer.data(), 6, DType::f32};
  CHECK(describe(Collective::all_reduce(view, ReduceOp::min)) == "all_reduce of 6 f32 (min)");
  CHECK(describe(Collective::broadcast(view, 1, 2)) == "broadcast of 6 f32 from rank 1");
  CHECK(describe(Collective::barrier()) == "barrier");
}

}  // namespace
}  // namespace fleetrun::comm::recording_test
