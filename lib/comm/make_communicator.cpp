#include "comm/make_communicator.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/run_key.h"
#include "comm/gloo.h"
#include "comm/host_id.h"
#include "comm/memory_store.h"
#include "comm/shared_memory.h"
#include "comm/solo.h"
#include "comm/store_client.h"

namespace fleetrun::comm {
namespace {

store_protocol::Identity identity_of(const RankEnv& env) {
  return {.run_id = env.run_id,
          .attempt = static_cast<std::uint32_t>(env.attempt),
          .rank = static_cast<std::uint32_t>(env.rank),
          .world_size = static_cast<std::uint32_t>(env.world_size)};
}

World join_alone(const RankEnv& env) { return {env, std::make_unique<MemoryStore>(), make_solo()}; }

// The first rank that is not on the host of rank 0, if there is one.
std::optional<int> first_elsewhere(const Party& party, Deadline deadline) {
  const std::vector<std::string> hosts = exchange(party, "host", host_id(), deadline);
  const auto found = std::find_if(hosts.begin(), hosts.end(), [&](auto& host) { return host != hosts[0]; });
  if (found == hosts.end()) return std::nullopt;
  return static_cast<int>(found - hosts.begin());
}

// Every rank comes to the same answer: nothing means Gloo.
std::unique_ptr<Communicator> try_shared_memory(const RankEnv& env, const Party& party, Deadline deadline) {
  agree(party, "transport", {{kCommBackendVariable, std::string(describe(env.comm_backend))}}, deadline);
  if (env.comm_backend == CommBackend::gloo) return nullptr;
  const bool wanted = env.comm_backend == CommBackend::shared_memory;
  if (const auto elsewhere = first_elsewhere(party, deadline)) {
    if (!wanted) return nullptr;
    throw Error(ErrorKind::usage, fmt::format("{} is shm, but rank {} is not on the host of rank 0",
                                              kCommBackendVariable, *elsewhere));
  }
  SharedMemoryJoin join = join_shared_memory({.party = party, .join_deadline = deadline.remaining()});
  const std::string problem = "the ranks cannot share memory: " + join.problem;
  if (!join.communicator && wanted) throw Error(ErrorKind::os, problem);
  if (!join.communicator && env.rank == 0) log_line("rank 0", problem + "; using Gloo");
  return std::move(join.communicator);
}

std::unique_ptr<Communicator> make_communicator(const RankEnv& env, StoreClient& store, const RunKey& key,
                                                Deadline deadline) {
  if (env.world_size == 1) return make_solo();
  const Party party = {store, env.rank, env.world_size};
  if (auto shared = try_shared_memory(env, party, deadline)) return shared;
  return make_gloo(
      {.party = party, .key = key, .address = store.local_address(), .join_deadline = deadline.remaining()});
}

World join_store(const RankEnv& env, Deadline deadline) {
  const RunKey key = read_run_key(env.key_fd);
  auto store = std::make_unique<StoreClient>(env.store, key, identity_of(env), deadline);
  auto communicator = make_communicator(env, *store, key, deadline);
  return {env, std::move(store), std::move(communicator)};
}

World join(const RankEnv& env, Deadline deadline) {
  if (env.store.port != 0) return join_store(env, deadline);
  if (env.world_size == 1) return join_alone(env);
  throw Error(ErrorKind::protocol, fmt::format("rank {} of {} was given no store to meet the others in",
                                               env.rank, env.world_size));
}

}  // namespace

World join_world(const RankEnv& env, std::chrono::milliseconds deadline) {
  const auto start = std::chrono::steady_clock::now();
  World world = join(env, Deadline(deadline));
  const auto took = std::chrono::round<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  log_line(fmt::format("rank {}", env.rank), fmt::format("joined {} rank{} in {} ms", env.world_size,
                                                         env.world_size == 1 ? "" : "s", took.count()));
  return world;
}

}  // namespace fleetrun::comm
