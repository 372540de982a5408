#include "comm/collective/hierarchical.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "comm/collective/solo.h"
#include "comm/communicator_cases.h"
#include "comm/gloo/gloo.h"
#include "comm/rendezvous/memory_store.h"
#include "comm/shared/shared_memory.h"
#include "support/counting_communicator.h"
#include "support/run_world.h"

namespace fleetrun::comm::hierarchical_test {
namespace {

using namespace std::chrono_literals;
using testing::CallLog;
using testing::run_world;
using Algorithm = HierarchicalAlgorithm;

enum class Parts { shared_memory, gloo, both };  // both: shared memory in a group, Gloo between groups

// Ranks as threads of this process.
struct GroupedWorld {
  int size = 4;
  int group_size = 2;
  Algorithm algorithm = Algorithm::leader;
  Parts parts = Parts::shared_memory;
  MemoryStore store;
  RunKey key = make_run_key();

  std::unique_ptr<Communicator> make(int rank, CallLog* log = nullptr) {
    const Party all = {store, rank, size};
    const auto segments = join_segments(all, "segments", Deadline(20s)).segments;
    return make_hierarchical(
        {.party = all, .group_size = group_size, .algorithm = algorithm},
        [&](const Party& party, const std::string& name) -> std::unique_ptr<Communicator> {
          const bool inside = party.names[0] / group_size == party.names.back() / group_size;
          auto part = make_part(party, name, inside, segments);
          if (log == nullptr) return part;
          return std::make_unique<testing::CountingCommunicator>(inside ? "group" : "across", std::move(part),
                                                                 *log);
        });
  }

 private:
  std::unique_ptr<Communicator> make_part(const Party& party, const std::string& name, bool inside,
                                          const std::shared_ptr<SharedSegments>& segments) const {
    if (party.size == 1) return make_solo();
    if (parts == Parts::gloo || (parts == Parts::both && !inside))
      return make_gloo(
          {.party = party, .key = key, .name = name, .join_deadline = 20s, .collective_deadline = 20s});
    return make_shared_memory(
        {.party = party, .name = name, .join_deadline = 20s, .collective_deadline = 20s}, segments);
  }
};

void run_grouped(GroupedWorld& world, const std::function<void(Communicator&)>& body) {
  run_world(
      world.size, [&](int rank) { return world.make(rank); }, body);
}

struct Shape {
  int size;
  int group_size;
};

TEST_CASE("hierarchical on shared memory: every collective, dtype and size, by leaders and by slices") {
  for (const Algorithm algorithm : {Algorithm::leader, Algorithm::scatter})
    for (const auto& [size, group_size] : {Shape{2, 2}, {4, 2}, {6, 3}}) {
      CAPTURE(size);
      CAPTURE(group_size);
      GroupedWorld world{.size = size, .group_size = group_size, .algorithm = algorithm};
      CHECK_NOTHROW(run_grouped(world, testing::run_all_cases));
    }
}

TEST_CASE("hierarchical on shared memory inside and Gloo between groups: every collective, dtype and size") {
  for (const Algorithm algorithm : {Algorithm::leader, Algorithm::scatter}) {
    GroupedWorld world{.algorithm = algorithm, .parts = Parts::both};
    CHECK_NOTHROW(run_grouped(world, testing::run_all_cases));
  }
}

TEST_CASE("hierarchical on Gloo: every collective, dtype and size") {
  for (const Algorithm algorithm : {Algorithm::leader, Algorithm::scatter}) {
    GroupedWorld world{.algorithm = algorithm, .parts = Parts::gloo};
    CHECK_NOTHROW(run_grouped(world, testing::run_all_cases));
  }
}

// Numbers of every size, so that rounding shows.
std::vector<float> odd_floats(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::ldexp(1.0F / static_cast<float>(i + 3 + 5 * static_cast<std::size_t>(rank)),
                           static_cast<int>((i * 7 + static_cast<std::size_t>(rank)) % 40) - 20);
  return values;
}

std::vector<float> summed(Communicator& comm, std::size_t count, bool in_own_memory) {
  std::vector<float> own = odd_floats(comm.rank(), count);
  const auto memory = comm.allocate(count * sizeof(float));
  auto* const data = in_own_memory ? own.data() : static_cast<float*>(memory->data());
  if (!in_own_memory) std::copy(own.begin(), own.end(), data);
  comm.all_reduce({data, count, DType::f32}, ReduceOp::sum);
  return {data, data + count};
}

TEST_CASE("hierarchical: the sum of two ranks has the bits of the flat one, in any memory") {
  constexpr std::size_t kCount = 100'003;
  std::vector<float> flat;
  CHECK_NOTHROW(run_world(2, [&](Communicator& comm) {
    std::vector<float> sum = summed(comm, kCount, true);
    if (comm.rank() == 0) flat = std::move(sum);
  }));
  for (const Algorithm algorithm : {Algorithm::leader, Algorithm::scatter})
    for (const Parts parts : {Parts::shared_memory, Parts::gloo}) {
      GroupedWorld world{.size = 2, .group_size = 2, .algorithm = algorithm, .parts = parts};
      CHECK_NOTHROW(run_grouped(world, [&](Communicator& comm) {
        for (const bool in_own_memory : {false, true})
          if (summed(comm, kCount, in_own_memory) != flat) throw std::runtime_error("other bits");
      }));
    }
}

TEST_CASE("hierarchical: all ranks have the same bits, within rounding of the flat sum") {
  constexpr std::size_t kCount = 100'003;
  for (const Algorithm algorithm : {Algorithm::leader, Algorithm::scatter})
    for (const int group_size : {2, 3}) {
      std::vector<std::vector<float>> sums(6);
      GroupedWorld world{.size = 6, .group_size = group_size, .algorithm = algorithm, .parts = Parts::both};
      run_grouped(world, [&](Communicator& comm) {
        sums[static_cast<std::size_t>(comm.rank())] = summed(comm, kCount, comm.rank() % 2 == 0);
      });
      for (const auto& sum : sums) CHECK(sum == sums[0]);
      std::vector<double> exact(kCount);
      for (int rank = 0; rank < 6; ++rank) {
        const std::vector<float> values = odd_floats(rank, kCount);
        std::transform(values.begin(), values.end(), exact.begin(), exact.begin(), std::plus<>());
      }
      double worst = 0;
      for (std::size_t i = 0; i < kCount; ++i) worst = std::max(worst, std::abs(sums[0][i] / exact[i] - 1));
      CHECK(worst < 1e-6);
    }
}

using Lines = std::vector<std::string>;

// The collectives of each rank's parts during one all_reduce of `count` elements.
std::vector<Lines> calls_of_all_reduce(Algorithm algorithm, std::size_t count) {
  GroupedWorld world{.algorithm = algorithm};
  std::vector<CallLog> logs(4);
  std::vector<Lines> calls(4);
  run_world(
      4, [&](int rank) { return world.make(rank, &logs[static_cast<std::size_t>(rank)]); },
      [&](Communicator& comm) {
        std::vector<float> values(count, 1.0F);
        comm.all_reduce({values.data(), count, DType::f32}, ReduceOp::sum);
        calls[static_cast<std::size_t>(comm.rank())] = logs[static_cast<std::size_t>(comm.rank())].take();
        if (comm.collectives() != 1) throw std::runtime_error("one all_reduce counts as one collective");
      });
  return calls;
}

TEST_CASE("by leaders: one reduce and one broadcast everywhere, an all_reduce on the leaders alone") {
  const std::vector<Lines> calls = calls_of_all_reduce(Algorithm::leader, 8);
  const Lines leader = {"group: reduce of 8 f32 (sum) to rank 0", "across: all_reduce of 8 f32 (sum)",
                        "group: broadcast of 8 f32 from rank 0"};
  const Lines member = {leader[0], leader[2]};
  CHECK(calls == std::vector<Lines>{leader, member, leader, member});
}

TEST_CASE("by slices: each rank sends its slice between groups, and the leaders what is left over") {
  const std::vector<Lines> calls = calls_of_all_reduce(Algorithm::scatter, 9);
  const Lines member = {"group: reduce_scatter of 8 f32 (sum)", "across: all_reduce of 4 f32 (sum)",
                        "group: all_gather of 8 f32", "group: reduce of 1 f32 (sum) to rank 0",
                        "group: broadcast of 1 f32 from rank 0"};
  Lines leader = member;
  leader.insert(leader.begin() + 4, "across: all_reduce of 1 f32 (sum)");
  CHECK(calls == std::vector<Lines>{leader, member, leader, member});
}

TEST_CASE("groups that do not divide the ranks are a bug of the caller") {
  MemoryStore store;
  for (const auto& [size, group_size] : {Shape{4, 3}, {4, 1}, {4, 0}, {1, 2}})
    CHECK_THROWS_AS(make_hierarchical({.party = {store, 0, size}, .group_size = group_size},
                                      [](const Party&, const std::string&) { return make_solo(); }),
                    Error);
}

TEST_CASE(
    "hierarchical: a rank that leaves is named by its number among all ranks, with what was under way") {
  GroupedWorld world{.size = 4};
  std::atomic<int> named = 0;
  run_grouped(world, [&](Communicator& comm) {
    std::vector<float> values(100, 1.0F);
    comm.all_reduce({values.data(), values.size(), DType::f32}, ReduceOp::sum);
    if (comm.rank() == 3) return;
    try {
      comm.all_reduce({values.data(), values.size(), DType::f32}, ReduceOp::sum);
    } catch (const Error& error) {
      const std::string text = error.describe(fmt::format("rank {}", comm.rank()));
      const bool at_rank_2 =
          text.find("rank 2: collective 3, reduce of 100 f32 (sum) to rank 2: waited for rank 3 (") !=
          std::string::npos;
      if (comm.rank() == 2 && at_rank_2) ++named;
      if (text.find("while running hierarchical collective 2, all_reduce of 100 f32 (sum)") !=
          std::string::npos)
        ++named;
    }
  });
  CHECK(named == 4);
}

}  // namespace
}  // namespace fleetrun::comm::hierarchical_test
