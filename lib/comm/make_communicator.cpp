#include "comm/make_communicator.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/run/run_key.h"
#include "base/text/plural.h"
#include "comm/collective/solo.h"
#include "comm/collective/transport.h"
#include "comm/rendezvous/host_id.h"
#include "comm/rendezvous/memory_store.h"
#include "comm/rendezvous/store_client.h"

namespace fleetrun::comm {
namespace {

store_protocol::Identity identity_of(const RankEnv& env) {
  return {.run_id = env.run_id,
          .attempt = static_cast<std::uint32_t>(env.attempt),
          .rank = static_cast<std::uint32_t>(env.rank),
          .world_size = static_cast<std::uint32_t>(env.world_size)};
}

// A line of comm_backends.def, with its transport.
struct Way {
  const CommBackendRow& backend;
  std::unique_ptr<Transport> transport;
};

std::unique_ptr<Transport> make_transport(CommBackend backend, const TransportFacts& facts) {
  switch (backend) {
#define COMM_BACKEND(id, name, title, reach) \
  case CommBackend::id:                      \
    return make_##id##_transport(facts);
#include "base/run/comm_backends.def"
#undef COMM_BACKEND
    case CommBackend::automatic:
      break;
  }
  throw Error(ErrorKind::internal, "auto is not a transport by itself");
}

// Those that `asked` allows, in the order in which they are tried: a backend for one host before those for any.
std::vector<Way> make_ways(CommBackend asked, const TransportFacts& facts) {
  std::vector<Way> ways;
  for (const Reach reach : {Reach::one_host, Reach::any_host})
    for (const CommBackendRow& row : comm_backends())
      if (row.reach == reach && (asked == CommBackend::automatic || asked == row.backend))
        ways.push_back({row, make_transport(row.backend, facts)});
  return ways;
}

bool needs_hosts(CommBackend asked) {
  return asked == CommBackend::automatic || row_of(asked).reach == Reach::one_host;
}

// How the ranks of one run reach each other, for any number of communicators. All ranks of a party get the same answer.
class Transports {
 public:
  // `hosts`: host_id() by rank of the world; none where no backend asks for it.
  Transports(CommBackend asked, const TransportFacts& facts, std::vector<std::string> hosts)
      : asked_(asked), hosts_(std::move(hosts)), ways_(make_ways(asked, facts)) {}

  std::unique_ptr<Communicator> make(const Party& party, const std::string& name, Deadline deadline) const {
    if (party.size == 1) return make_solo();
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      if (!reaches(ways_[i], party)) continue;
      TransportJoin join = ways_[i].transport->join(party, name, deadline);
      if (join.communicator) return std::move(join.communicator);
      if (i + 1 == ways_.size()) throw Error(ErrorKind::os, join.problem);
      if (party.rank == 0)
        log_line(fmt::format("rank {}", party.name()),
                 fmt::format("{}; using {}", join.problem, ways_[i + 1].backend.title));
    }
    throw Error(ErrorKind::internal, "no backend is for ranks of several hosts");
  }

 private:
  // Throws Error(usage) when the only backend that was asked for is for one host.
  bool reaches(const Way& way, const Party& party) const {
    if (way.backend.reach == Reach::any_host) return true;
    const auto elsewhere = first_elsewhere(party);
    if (elsewhere && asked_ != CommBackend::automatic)
      throw Error(ErrorKind::usage,
                  fmt::format("{} is {}, but rank {} is not on the host of rank {}", kCommBackendVariable,
                              way.backend.name, *elsewhere, party.name_of(0)));
    return !elsewhere;
  }

  // The first rank that is not on the host of the party's first, if there is one.
  std::optional<int> first_elsewhere(const Party& party) const {
    const auto host_of = [&](int rank) { return hosts_.at(static_cast<std::size_t>(party.name_of(rank))); };
    for (int rank = 1; rank < party.size; ++rank)
      if (host_of(rank) != host_of(0)) return party.name_of(rank);
    return std::nullopt;
  }

  const CommBackend asked_;
  const std::vector<std::string> hosts_;
  const std::vector<Way> ways_;
};

World join_alone(const RankEnv& env) {
  return {env, std::make_unique<MemoryStore>(), make_solo(),
          [](const Party&, const std::string&) { return make_solo(); }};
}

World join_store(const RankEnv& env, Deadline deadline) {
  const RunKey key = read_run_key(env.key_fd);
  // Ends before the others stop waiting for us, so that the first failure of the run names what this rank cannot reach.
  const Deadline connecting(deadline.remaining() * 9 / 10);
  auto store = std::make_unique<StoreClient>(env.store, key, identity_of(env), connecting);
  const Party party = {*store, env.rank, env.world_size};
  std::vector<std::string> hosts;
  if (env.world_size > 1) {
    agree(party, "transport", {{kCommBackendVariable, std::string(describe(env.comm_backend))}}, deadline);
    if (needs_hosts(env.comm_backend)) hosts = exchange(party, "host", host_id(), deadline);
  }
  const auto transports = std::make_shared<Transports>(  // shared by copies of the function
      env.comm_backend, TransportFacts{key, store->local_address()}, hosts);
  auto communicator = transports->make(party, "0", deadline);
  return {env,
          std::move(store),
          std::move(communicator),
          [transports](const Party& some, const std::string& name) {
            return transports->make(some, name, Deadline(kJoinDeadline));
          },
          {},
          std::move(hosts)};
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
  UniqueFd logs = remember_folder(env.log_dir);
  World world = join(env, Deadline(deadline));
  world.logs = std::move(logs);
  const auto took = std::chrono::round<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  log_line(fmt::format("rank {}", env.rank),
           fmt::format("joined {} in {} ms", plural(env.world_size, "rank"), took.count()));
  return world;
}

}  // namespace fleetrun::comm
