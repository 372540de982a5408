// The communicator of a device on a library that stands in for NCCL and fails on request.
#include "cuda/logic/device_communicator.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "comm/collective/aligned_memory.h"
#include "comm/rendezvous/memory_store.h"
#include "support/run_world.h"

namespace fleetrun::cuda::device_communicator_test {
namespace {

using State = CollectiveLibrary::State;
using namespace std::chrono_literals;

// What the test sees and decides of a library, which the communicator owns.
struct Script {
  std::string joined_with;     // id
  int calls_until_done = 3;    // looks at each call, and at its work, that find it busy
  std::uint64_t fails_in = 0;  // this collective's work is found to have failed; 0: none
  std::uint64_t hangs_in = 0;  // this collective never ends
  bool fails_to_join = false;
  bool for_host = false;  // buffers are the host's
  std::uint64_t begun = 0;
  int finished = 0;
  int aborted = 0;
  int followed = 0;  // the compute stream
};

class StandInLibrary : public CollectiveLibrary {
 public:
  explicit StandInLibrary(Script& script) : script_(script) {}
  std::string make_id() override { return std::string("id\0of rank 0", 12); }
  void begin_join(const std::string& id, int, int) override {
    script_.joined_with = id;
    call_busy_ = script_.calls_until_done;
  }
  bool is_for_host(const comm::Collective&) override { return script_.for_host; }
  void begin(const comm::Collective&) override {
    ++script_.begun;
    call_busy_ = work_busy_ = script_.calls_until_done;
  }
  State calls() override {
    if (script_.fails_to_join || (script_.begun != 0 && script_.begun == script_.fails_in))
      return State::failed;
    return call_busy_-- > 0 ? State::busy : State::done;
  }
  State work() override {
    if (script_.begun == script_.hangs_in) return State::busy;
    return work_busy_-- > 0 ? State::busy : State::done;
  }
  void finish() override { ++script_.finished; }
  void abort() override { ++script_.aborted; }
  std::string problem() override { return "remote process exited"; }
  void follow_compute() override {
    ++script_.followed;
    work_busy_ = script_.calls_until_done;
  }
  std::unique_ptr<comm::Memory> allocate(std::size_t bytes) override {
    return comm::make_aligned_memory(bytes);
  }

 private:
  Script& script_;
  int call_busy_ = 0, work_busy_ = 0;
};

std::unique_ptr<DeviceCommunicator> make(Script& script, const DeviceCommunicatorOptions& options) {
  return std::make_unique<DeviceCommunicator>(std::make_unique<StandInLibrary>(script), options);
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::temporary);
    return error.message();
  }
  return "no error";
}

struct Alone {
  comm::MemoryStore store;
  float value = 1;
  comm::Party party() { return {store, 0, 1}; }
  BufferView buffer() { return {&value, 1, DType::f32}; }
};

TEST_CASE("all ranks join with the id of rank 0") {
  comm::MemoryStore store;
  Script scripts[3];
  testing::run_ranks(3, [&](int rank) { make(scripts[rank], {.party = {store, rank, 3}}); });
  for (const Script& script : scripts) CHECK(script.joined_with == scripts[0].joined_with);
  CHECK(scripts[0].joined_with.size() == 12);
}

TEST_CASE("a collective returns when its work is done and the host has its part") {
  Alone alone;
  Script script;
  const auto communicator = make(script, {.party = alone.party()});
  communicator->all_reduce(alone.buffer(), comm::ReduceOp::sum);
  communicator->broadcast(alone.buffer(), 0);
  CHECK(communicator->collectives() == 2);
  CHECK(script.finished == 2);
  CHECK(script.aborted == 0);
}

TEST_CASE("a collective that is not waited for returns when it was begun, and a poll finds its end") {
  Alone alone;
  Script script;
  const auto communicator = make(script, {.party = alone.party(), .wait = false});
  communicator->all_reduce(alone.buffer(), comm::ReduceOp::sum);
  CHECK(script.finished == 0);
  communicator->reduce(alone.buffer(), comm::ReduceOp::sum, 0);
  communicator->broadcast(alone.buffer(), 0);
  CHECK(script.finished == 0);
  for (int i = 0; i < 10; ++i) communicator->poll();
  communicator->barrier();  // always waited for
  CHECK(script.finished == 1);
}

TEST_CASE("a collective on the host's memory is waited for in any case") {
  Alone alone;
  Script script = {.for_host = true};
  const auto communicator = make(script, {.party = alone.party(), .wait = false});
  communicator->all_reduce(alone.buffer(), comm::ReduceOp::sum);
  CHECK(script.finished == 1);
}

// A copy from memory of the host waits by itself for what the stream was given before, and nobody would see that a rank is gone.
TEST_CASE("before a collective on the host's memory begins, the one before it is waited for") {
  Alone alone;
  Script script = {.hangs_in = 1};
  const auto communicator =
      make(script, {.party = alone.party(), .wait = false, .collective_deadline = 20ms});
  communicator->all_reduce(alone.buffer(), comm::ReduceOp::sum);
  script.for_host = true;
  CHECK(message_of([&] {
          communicator->broadcast(alone.buffer(), 0);
        }).starts_with("rank 0: collective 1, all_reduce of 1 f32 (sum): "));
  CHECK(script.begun == 1);
}

TEST_CASE("an error that is found later names the collective and what the library says, and aborts") {
  Alone alone;
  for (const bool wait : {true, false}) {
    CAPTURE(wait);
    Script script = {.fails_in = 2};
    comm::MemoryStore store;
    const auto communicator = make(script, {.party = {store, 0, 1}, .wait = wait});
    communicator->all_reduce(alone.buffer(), comm::ReduceOp::sum);
    CHECK(
        message_of([&] {
          communicator->all_reduce(alone.buffer(), comm::ReduceOp::sum);
          for (int i = 0; i < 10; ++i) communicator->poll();
        }) ==
        "rank 0: collective 2, all_reduce of 1 f32 (sum): all ranks are there, but their connection broke (remote process exited)");
    CHECK(script.aborted == 1);
    CHECK(message_of([&] { communicator->barrier(); }) ==
          "rank 0: barrier cannot begin: the communicator was given up in collective 2");
  }
}

TEST_CASE("a rank that never comes is named when the deadline has passed") {
  comm::MemoryStore store;
  Script scripts[2] = {{.hangs_in = 1}, {}};
  std::string said;
  testing::run_ranks(2, [&](int rank) {
    const auto communicator = make(scripts[rank], {.party = {store, rank, 2}, .collective_deadline = 50ms});
    float value = 1;
    if (rank == 0)
      said = message_of([&] { communicator->all_reduce({&value, 1, DType::f32}, comm::ReduceOp::sum); });
  });
  CHECK(said == "rank 0: collective 1, all_reduce of 1 f32 (sum): waited for rank 1 (not done after 0.05 s)");
  CHECK(scripts[0].aborted == 1);
}

TEST_CASE("ranks that fail in different collectives say so of each other") {
  comm::MemoryStore store;
  Script scripts[2] = {{.fails_in = 1}, {.fails_in = 2}};
  std::string said[2];
  testing::run_ranks(2, [&](int rank) {
    const auto communicator = make(scripts[rank], {.party = {store, rank, 2}});
    float value = 1;
    said[rank] = message_of([&] {
      communicator->all_reduce({&value, 1, DType::f32}, comm::ReduceOp::sum);
      communicator->barrier();
    });
  });
  CHECK(
      said[0] ==
      "rank 0: collective 1, all_reduce of 1 f32 (sum): rank 1 failed in collective 2, barrier (remote process exited)");
  CHECK(
      said[1] ==
      "rank 1: collective 2, barrier: rank 0 failed in collective 1, all_reduce of 1 f32 (sum) (remote process exited)");
}

TEST_CASE("a collective that is recorded counts each time it is repeated, and not before") {
  Alone alone;
  Script script;
  const auto communicator = make(script, {.party = alone.party(), .wait = false});
  communicator->begin_recording();
  communicator->all_reduce(alone.buffer(), comm::ReduceOp::sum);
  communicator->broadcast(alone.buffer(), 0);
  const auto recorded = communicator->end_recording();
  CHECK(recorded.size() == 2);
  CHECK(communicator->collectives() == 0);
  communicator->repeat(recorded);
  communicator->repeat(recorded);
  CHECK(communicator->collectives() == 4);
  CHECK(script.begun == 2);
  CHECK(script.followed == 2);
  communicator->all_reduce(alone.buffer(), comm::ReduceOp::sum);
  CHECK(script.begun == 3);
  CHECK(communicator->end_recording().empty());
}

TEST_CASE("a rank that never comes to a repeated step is named when the deadline has passed") {
  Alone alone;
  Script script = {.hangs_in = 2};
  const auto communicator =
      make(script, {.party = alone.party(), .wait = false, .collective_deadline = 20ms});
  communicator->begin_recording();
  communicator->all_reduce(alone.buffer(), comm::ReduceOp::sum);
  communicator->broadcast(alone.buffer(), 0);
  communicator->repeat(communicator->end_recording());
  const std::string said = message_of([&] {
    for (;;) communicator->poll();
  });
  CHECK(said.starts_with(
      "rank 0: collectives 1 to 2 of a repeated step, the last one broadcast of 1 f32 from rank 0: "));
  CHECK(said.ends_with("(not done after 0.02 s)"));
  CHECK(script.aborted == 1);
}

TEST_CASE("what the host waits for cannot be recorded") {
  Alone alone;
  Script script;
  const auto communicator = make(script, {.party = alone.party(), .wait = false});
  communicator->begin_recording();
  CHECK_THROWS_WITH_AS(communicator->barrier(), "a barrier cannot be recorded, because the host waits for it",
                       Error);
  script.for_host = true;
  CHECK_THROWS_WITH_AS(communicator->all_reduce(alone.buffer(), comm::ReduceOp::sum),
                       "all_reduce of 1 f32 (sum) on the host's memory cannot be recorded", Error);
}

TEST_CASE("a failure to join is reported as one") {
  Alone alone;
  Script script = {.fails_to_join = true};
  CHECK(message_of([&] { make(script, {.party = alone.party()}); }) ==
        "rank 0: joining: all ranks are there, but their connection broke (remote process exited)");
}

}  // namespace
}  // namespace fleetrun::cuda::device_communicator_test
