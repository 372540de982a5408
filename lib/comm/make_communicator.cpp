#include "comm/make_communicator.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/run_key.h"
#include "comm/collective/solo.h"
#include "comm/gloo/gloo.h"
#include "comm/rendezvous/host_id.h"
#include "comm/rendezvous/memory_store.h"
#include "comm/rendezvous/store_client.h"
#include "comm/shared/shared_memory.h"

namespace fleetrun::comm {
namespace {

store_protocol::Identity identity_of(const RankEnv& env) {
  return {.run_id = env.run_id,
          .attempt = static_cast<std::uint32_t>(env.attempt),
          .rank = static_cast<std::uint32_t>(env.rank),
          .world_size = static_cast<std::uint32_t>(env.world_size)};
}

// How the ranks of one run reach each other, for any number of communicators.
class Transports {
 public:
  Transports(const RankEnv& env, const StoreClient& store, const RunKey& key)
      : backend_(env.comm_backend), key_(key), address_(store.local_address()) {}

  std::unique_ptr<Communicator> make(const Party& party, const std::string& name, Deadline deadline) {
    if (party.size == 1) return make_solo();
    if (auto segments = shared_by(party, name, deadline))
      return make_shared_memory({.party = party, .name = name, .join_deadline = deadline.remaining()},
                                std::move(segments));
    return make_gloo({.party = party,
                      .key = key_,
                      .address = address_,
                      .name = name,
                      .join_deadline = deadline.remaining()});
  }

 private:
  // Every rank of the party comes to the same answer: nothing means Gloo.
  std::shared_ptr<SharedSegments> shared_by(const Party& party, const std::string& name, Deadline deadline) {
    if (backend_ == CommBackend::gloo) return nullptr;
    for (const auto& segments : segments_)
      if (segments->hold(party)) return segments;
    const bool wanted = backend_ == CommBackend::shared_memory;
    if (const auto elsewhere = first_elsewhere(party, name, deadline)) {
      if (!wanted) return nullptr;
      throw Error(ErrorKind::usage, fmt::format("{} is shm, but rank {} is not on the host of rank {}",
                                                kCommBackendVariable, *elsewhere, party.name_of(0)));
    }
    SegmentsJoin join = join_segments(party, fmt::format("shared memory {}", name), deadline);
    const std::string problem = "the ranks cannot share memory: " + join.problem;
    if (!join.segments && wanted) throw Error(ErrorKind::os, problem);
    if (!join.segments && party.rank == 0)
      log_line(fmt::format("rank {}", party.name()), problem + "; using Gloo");
    if (join.segments) segments_.push_back(join.segments);
    return join.segments;
  }

  // The first rank that is not on the host of the party's first, if there is one.
  static std::optional<int> first_elsewhere(const Party& party, const std::string& name, Deadline deadline) {
    const std::vector<std::string> hosts = exchange(party, "host " + name, host_id(), deadline);
    const auto found = std::find_if(hosts.begin(), hosts.end(), [&](auto& host) { return host != hosts[0]; });
    if (found == hosts.end()) return std::nullopt;
    return party.name_of(static_cast<int>(found - hosts.begin()));
  }

  const CommBackend backend_;
  const RunKey key_;
  const std::string address_;
  std::vector<std::shared_ptr<SharedSegments>> segments_;  // shared with the communicators on them
};

World join_alone(const RankEnv& env) {
  return {env, std::make_unique<MemoryStore>(), make_solo(),
          [](const Party&, const std::string&) { return make_solo(); }};
}

World join_store(const RankEnv& env, Deadline deadline) {
  const RunKey key = read_run_key(env.key_fd);
  auto store = std::make_unique<StoreClient>(env.store, key, identity_of(env), deadline);
  const Party party = {*store, env.rank, env.world_size};
  const auto transports = std::make_shared<Transports>(env, *store, key);  // shared by copies of the function
  if (env.world_size > 1)
    agree(party, "transport", {{kCommBackendVariable, std::string(describe(env.comm_backend))}}, deadline);
  auto communicator = transports->make(party, "0", deadline);
  return {env, std::move(store), std::move(communicator),
          [transports](const Party& some, const std::string& name) {
            return transports->make(some, name, Deadline(kJoinDeadline));
          }};
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
  log_line(fmt::format("rank {}", env.rank),
           fmt::format("joined {} in {} ms", plural(env.world_size, "rank"), took.count()));
  return world;
}

}  // namespace fleetrun::comm
