#include "comm/make_communicator.h"

#include <doctest/doctest.h>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error/error.h"
#include "base/run/run_key.h"
#include "comm/communicator_cases.h"
#include "comm/rendezvous/host_id.h"
#include "support/leave_out.h"
#include "support/run_world.h"
#include "support/store_thread.h"

namespace fleetrun::comm::make_communicator_test {
namespace {

using namespace std::chrono_literals;
using testing::StoreThread;

// A launcher with its store and its key, and what it tells each rank.
struct Launcher {
  explicit Launcher(int size) : world_size(size) {}

  RankEnv env_of(int rank) const {
    return {.rank = rank,
            .world_size = world_size,
            .attempt = 2,
            .run_id = "run-1",
            .store = store.endpoint(),
            .key_fd = key_fd.get()};
  }

  int world_size;
  RunKey key = make_run_key();
  UniqueFd key_fd = put_run_key(key);
  StoreThread store{{.key = key, .run_id = "run-1", .attempt = 2, .world_size = world_size}};
};

void check_all_cases(int size, CommBackend backend) {
  CAPTURE(size);
  Launcher launcher(size);
  testing::run_ranks(size, [&](int rank) {
    RankEnv env = launcher.env_of(rank);
    env.comm_backend = backend;
    const World world = join_world(env, 20s);
    if (world.communicator->rank() != rank || world.communicator->size() != size)
      throw std::runtime_error("a wrong rank or size");
    agree(world.party(), "fingerprint", {{"program", "a41f"}}, Deadline(20s));
    testing::run_all_cases(*world.communicator);
  });
  CHECK(launcher.store.missing_ranks().empty());
  CHECK(launcher.store.dropped() == 0);
}

TEST_CASE("gloo through the launcher's store: every collective, dtype and size") {
  for (const int size : {1, 2, 4}) check_all_cases(size, CommBackend::gloo);
}

TEST_CASE("shared memory through the launcher's store: every collective, dtype and size") {
  for (const int size : {1, 2, 4}) check_all_cases(size, CommBackend::shared_memory);
}

// Memory that others can see is what tells the two backends apart.
bool shares_memory(Communicator& comm) {
  const auto memory = comm.allocate(4096);
  const auto address = reinterpret_cast<std::uintptr_t>(memory->data());
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) == 2 && begin <= address &&
        address < end)
      return line.find("memfd:fleetrun-collectives") != std::string::npos;
  }
  return false;
}

TEST_CASE("ranks of one host share memory, unless Gloo is asked for") {
  for (const CommBackend backend : {CommBackend::automatic, CommBackend::gloo}) {
    Launcher launcher(2);
    std::atomic<int> sharing = 0;
    testing::run_ranks(2, [&](int rank) {
      RankEnv env = launcher.env_of(rank);
      env.comm_backend = backend;
      const World world = join_world(env, 20s);
      if (shares_memory(*world.communicator)) ++sharing;
      world.communicator->barrier();
    });
    CHECK(sharing == (backend == CommBackend::automatic ? 2 : 0));
  }
}

void sum_ranks(Communicator& comm, BufferView buffer) {
  std::fill_n(buffer.as<float>(), buffer.count, static_cast<float>(comm.rank() + 1));
  comm.all_reduce(buffer, ReduceOp::sum);
  const int sum = comm.size() * (comm.size() + 1) / 2;
  const auto wanted = static_cast<float>(sum);
  if (std::count(buffer.as<float>(), buffer.as<float>() + buffer.count, wanted) !=
      static_cast<std::ptrdiff_t>(buffer.count))
    throw std::runtime_error("a wrong sum");
}

TEST_CASE("a world makes more communicators, of all ranks and of groups, that work beside each other") {
  for (const CommBackend backend : {CommBackend::shared_memory, CommBackend::gloo}) {
    Launcher launcher(4);
    testing::FirstFailure
        failure;  // noted before the rank gives its communicators up, which the others notice
    testing::run_ranks(4, [&](int rank) {
      RankEnv env = launcher.env_of(rank);
      env.comm_backend = backend;
      std::optional<World> world;
      std::vector<std::unique_ptr<Communicator>> more;
      failure.guard([&] {
        world.emplace(join_world(env, 20s));
        more.push_back(world->more(world->party(), "1"));
        for (const auto algorithm : {HierarchicalAlgorithm::leader, HierarchicalAlgorithm::scatter})
          more.push_back(make_hierarchical({.party = world->party(),
                                            .group_size = 2,
                                            .algorithm = algorithm,
                                            .name = std::to_string(more.size() + 1)},
                                           world->more));
        if (shares_memory(*more.back()) != (backend == CommBackend::shared_memory))
          throw std::runtime_error("another backend");
        testing::run_ranks(3, [&](int i) {
          failure.guard([&] {
            Communicator& comm = *more[static_cast<std::size_t>(i)];
            const auto memory = world->communicator->allocate(40'000);
            for (int round = 0; round < 20; ++round) sum_ranks(comm, {memory->data(), 10'000, DType::f32});
          });
        });
      });
    });
    CHECK_NOTHROW(failure.rethrow());
  }
}

TEST_CASE("ranks in different networks use Gloo, as if they were on different hosts") {
  // Our own network namespace for one of the threads: it cannot be made everywhere.
  if (::geteuid() != 0) LEAVE_OUT("takes root, for a network namespace");
  std::string here;
  std::string there;
  std::thread([&] { here = host_id(); }).join();
  bool moved = false;
  std::thread([&] {
    moved = ::unshare(CLONE_NEWNET) == 0;
    there = host_id();
  }).join();
  CHECK(here == host_id());
  if (!moved) LEAVE_OUT("no network namespace can be made here");
  CHECK(there != here);
}

TEST_CASE("ranks that were told different transports say which") {
  Launcher launcher(2);
  std::atomic<int> named = 0;
  testing::run_ranks(2, [&](int rank) {
    RankEnv env = launcher.env_of(rank);
    if (rank == 1) env.comm_backend = CommBackend::gloo;
    try {
      join_world(env, 20s);
    } catch (const Error& error) {
      if (error.message() == "ranks differ in FLEETRUN_COMM_BACKEND: rank 0 has auto, rank 1 has gloo")
        ++named;
    }
  });
  CHECK(named == 2);
}

TEST_CASE("a worker started by hand is a world of one, without key or store") {
  const World world = join_world(RankEnv());
  CHECK(world.communicator->size() == 1);
  world.communicator->barrier();
  agree(world.party(), "fingerprint", {{"program", "a41f"}}, Deadline(1s));
}

TEST_CASE("several ranks without a store are an error") {
  CHECK_THROWS_WITH_AS(join_world({.rank = 1, .world_size = 2}),
                       "rank 1 of 2 was given no store to meet the others in", Error);
}

TEST_CASE("a rank that never comes is named by those that wait, and by the launcher") {
  Launcher launcher(3);
  std::atomic<int> named = 0;
  testing::run_ranks(2, [&](int rank) {
    try {
      join_world(launcher.env_of(rank), 300ms);
    } catch (const Error& error) {
      if (error.exit_code() == 75 && error.message().find("for rank 2 to bring") != std::string::npos)
        ++named;
    }
  });
  CHECK(named == 2);
  CHECK(launcher.store.missing_ranks() == std::vector{2});
}

}  // namespace
}  // namespace fleetrun::comm::make_communicator_test
