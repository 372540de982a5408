// The ranks of a benchmark, all on this host.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "comm/collective/solo.h"
#include "comm/make_communicator.h"
#include "comm/shared/shared_memory.h"
#include "folder_store.h"

namespace fleetrun::bench {

// Runs rank(0) to rank(ranks - 1), each in a process of its own. Returns 0, or 1 when one of them failed.
template <typename Rank>
int fork_ranks(int ranks, const Rank& rank) {
  for (int i = 0; i < ranks; ++i) {
    if (::fork() != 0) continue;
    try {
      rank(i);
      std::fflush(stdout);
      ::_exit(0);
    } catch (const std::exception& error) {
      fmt::print(stderr, "rank {}: {}\n", i, error.what());
      ::_exit(1);
    }
  }
  int failed = 0;
  for (int status = 0; ::wait(&status) > 0;) failed += status != 0;
  return failed == 0 ? 0 : 1;
}

// Ranks that share memory and find each other in `folder`; a single one works alone.
inline comm::World join_host(const std::string& folder, int rank, int ranks) {
  const RankEnv env = {.rank = rank, .world_size = ranks, .local_rank = rank, .local_size = ranks};
  if (ranks == 1) return {env, nullptr, comm::make_solo(), nullptr};
  auto store = std::make_unique<FolderStore>(folder);
  comm::SharedMemoryJoin join = comm::join_shared_memory({.party = {*store, rank, ranks}});
  if (!join.communicator) throw std::runtime_error(join.problem);
  const auto more = [segments = join.segments](const comm::Party& party, const std::string& name) {
    return comm::make_shared_memory({.party = party, .name = name}, segments);
  };
  return {env, std::move(store), std::move(join.communicator), more};
}

}  // namespace fleetrun::bench
