#include "comm/make_communicator.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/run_key.h"
#include "comm/gloo.h"
#include "comm/memory_store.h"
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

World join_store(const RankEnv& env, Deadline deadline) {
  const RunKey key = read_run_key(env.key_fd);
  auto store = std::make_unique<StoreClient>(env.store, key, identity_of(env), deadline);
  if (env.world_size == 1) return {env, std::move(store), make_solo()};
  const GlooOptions options = {.party = {*store, env.rank, env.world_size},
                               .key = key,
                               .address = store->local_address(),
                               .join_deadline = deadline.remaining()};
  auto communicator = make_gloo(options);
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
