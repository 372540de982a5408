#include "comm/gloo/gloo_mesh.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <gloo/types.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "comm/gloo/mesh_state.h"

namespace fleetrun::comm {
namespace {

using std::chrono::milliseconds;

// One try. All ranks begin it together, and on a sound network it takes milliseconds.
constexpr milliseconds kTryDeadline = std::chrono::seconds(10);
// Between two tries; doubled after each, up to 32 times as long.
constexpr milliseconds kFirstPause = milliseconds(100);
// Gloo multiplies the timeout of its context by this while it waits for a connection.
constexpr int kGlooConnectFactor = 5;
constexpr std::uint8_t kProofSlotPrefix = 0x70;  // Gloo's own collectives use 0x01 to 0x08
// Enough for a sound network where the time for joining is nearly over.
constexpr milliseconds kShortestTry = std::chrono::seconds(1);

// Gloo's addresses go through our authenticated store, under a name of their own. Each rank sets its own, then gets those of one rank after
// the other, and connects with each before it gets the next.
class PrefixedStore : public gloo::rendezvous::Store {
 public:
  PrefixedStore(const Party& party, std::string prefix, Deadline deadline)
      : store_(party.store),
        rank_(party.rank),
        size_(party.size),
        prefix_(std::move(prefix)),
        deadline_(deadline) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    if (key == std::to_string(rank_)) own_ends_ = data;
    store_.set(prefix_ + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get(prefix_ + key, deadline_);
    std::vector<char> ends(value.begin(), value.end());
    if (const auto peer = rank_in(key))
      connecting_ = MissingLink{*peer, end_for(*peer, own_ends_, rank_), end_for(rank_, ends, *peer)};
    return ends;
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, deadline_.remaining()); }
  void wait(const std::vector<std::string>& keys, const milliseconds& timeout) override {
    const Deadline deadline(timeout);
    connecting_.reset();
    for (const std::string& key : keys) store_.get(prefix_ + key, deadline);
  }

  const std::optional<MissingLink>& connecting() const { return connecting_; }
  void note_connected() { connecting_.reset(); }

 private:
  // Gloo has other keys, too, such as "rank_0" for the name of a host.
  static std::optional<int> rank_in(const std::string& key) {
    int rank = 0;
    const char* const end = key.data() + key.size();
    const auto [stop, problem] = std::from_chars(key.data(), end, rank);
    return problem == std::errc() && stop == end ? std::optional(rank) : std::nullopt;
  }

  // Of `rank`, among the ends that `owner` has for all others; "" if they are not what we expect.
  std::string end_for(int rank, const std::vector<char>& ends, int owner) const {
    const std::size_t bytes = ends.size() / static_cast<std::size_t>(std::max(size_ - 1, 1));
    const auto place =
        static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank - (rank > owner ? 1 : 0)) * bytes);
    return describe_end({ends.begin() + place, ends.begin() + place + static_cast<std::ptrdiff_t>(bytes)});
  }

  comm::Store& store_;
  const int rank_, size_;
  const std::string prefix_;
  const Deadline deadline_;
  std::vector<char> own_ends_;
  std::optional<MissingLink> connecting_;  // what Gloo is about to connect
};

std::shared_ptr<gloo::Context> connect_all(const MeshOptions& options, PrefixedStore& store, GlooWatch& watch,
                                           Deadline deadline) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = options.address;
  auto device = watch.device(gloo::transport::tcp::CreateDevice(attributes));
  auto context = std::make_shared<gloo::rendezvous::Context>(options.party.rank, options.party.size);
  context->setTimeout(std::max(deadline.remaining() / kGlooConnectFactor, milliseconds(1)));
  context->connectFullMesh(store, device);
  store.note_connected();
  return context;
}

template <std::size_t Bytes>
using Messages = std::vector<std::array<std::uint8_t, Bytes>>;  // by rank; our own place is not used

// Gives each rank its message of `out` and takes theirs.
template <std::size_t Bytes>
Messages<Bytes> swap_messages(gloo::Context& context, Messages<Bytes> out, std::uint32_t tag,
                              Deadline deadline) {
  const auto slot = gloo::Slot::build(kProofSlotPrefix, tag);
  Messages<Bytes> in(out.size());
  const auto sending = context.createUnboundBuffer(out.data(), out.size() * Bytes);
  const auto receiving = context.createUnboundBuffer(in.data(), in.size() * Bytes);
  for (int other = 0; other < context.size; ++other) {
    if (other == context.rank) continue;
    const std::size_t offset = static_cast<std::size_t>(other) * Bytes;
    receiving->recv(other, slot, offset, Bytes);
    sending->send(other, slot, offset, Bytes);
  }
  for (int other = 1; other < context.size; ++other) {
    receiving->waitRecv(deadline.remaining());
    sending->waitSend(deadline.remaining());
  }
  return in;
}

Mac proof(const MeshOptions& options, int from, int to, const Nonce& from_nonce, const Nonce& to_nonce) {
  std::string message = fmt::format("mesh {} from {} to {}: ", options.name, from, to);
  message.append(from_nonce.begin(), from_nonce.end());
  message.append(to_nonce.begin(), to_nonce.end());
  return hmac_sha256(options.key, message);
}

// Throws Error(protocol) that names the rank that is not what it says.
void prove(const MeshOptions& options, gloo::Context& context, Deadline deadline) {
  using Digests = Messages<32>;
  const int self = context.rank;
  const auto ranks = static_cast<std::size_t>(context.size);
  const Nonce ours = make_nonce();
  const Digests nonces = swap_messages(context, Digests(ranks, ours), 0, deadline);
  Digests proofs(ranks);
  for (std::size_t other = 0; other < ranks; ++other)
    proofs[other] = proof(options, self, static_cast<int>(other), ours, nonces[other]);
  const Digests theirs = swap_messages(context, std::move(proofs), 1, deadline);
  for (int other = 0; other < context.size; ++other) {
    const auto index = static_cast<std::size_t>(other);
    if (other != self &&
        !equal_in_constant_time(theirs[index], proof(options, other, self, nonces[index], ours)))
      throw Error(ErrorKind::protocol, fmt::format("who answers as rank {} does not hold the run key",
                                                   options.party.name_of(other)));
  }
}

// What own_ends() says of us on each rank.
std::vector<std::string> ends_of_peers(gloo::Context& context, Deadline deadline) {
  constexpr std::size_t kLongest = 64;  // "[" IPv6 "]:65535" has at most 47 characters
  Messages<kLongest> out;
  for (const std::string& end : own_ends(context)) {
    std::copy_n(end.begin(), std::min(end.size(), kLongest - 1), out.emplace_back().begin());
  }
  std::vector<std::string> ends;
  for (auto& theirs : swap_messages(context, std::move(out), 2, deadline)) {
    theirs.back() = 0;
    ends.emplace_back(reinterpret_cast<const char*>(theirs.data()));
  }
  return ends;
}

struct Try {
  Mesh mesh;
  MeshState state;
};

bool says_that_peer_left(const std::string& gloo_says) {
  return gloo_says.find("closed by peer") != std::string::npos ||
         gloo_says.find("reset by peer") != std::string::npos;
}

// Gloo names its own source files, and ports with their bytes in another order.
std::string why_no_connection(const std::string& gloo_says, Deadline deadline) {
  if (gloo_says.find("imeout") != std::string::npos)
    return fmt::format("no answer in {:g} s", deadline.total_seconds());
  if (says_that_peer_left(gloo_says)) return "the other end closed it";
  const std::size_t colon = gloo_says.rfind(": ");
  return colon == std::string::npos ? gloo_says : gloo_says.substr(colon + 2);
}

Try try_mesh(const MeshOptions& options, const std::string& prefix, milliseconds time) {
  Try made;
  const Deadline deadline(time);
  PrefixedStore store(options.party, prefix, deadline);
  try {
    made.mesh.watch = std::make_shared<GlooWatch>();
    made.mesh.context = connect_all(options, store, *made.mesh.watch, deadline);
    prove(options, *made.mesh.context, deadline);
    made.mesh.watch->begin(*made.mesh.context, ends_of_peers(*made.mesh.context, deadline));
    made.state.proven = true;
  } catch (const std::exception& error) {  // Gloo's, the store's or our own: each ends this try
    made.state.missing = store.connecting();
    made.state.why = made.state.missing ? why_no_connection(error.what(), deadline) : error.what();
    made.state.peer_left = made.state.missing && says_that_peer_left(error.what());
  }
  return made;
}

// Once all ranks have begun a try, each ends it after this time at the latest, and says how it ended.
milliseconds time_for_answers(milliseconds time) { return 2 * time + kShortestTry; }

std::vector<MeshState> swap_states(const Party& party, const std::string& name, const MeshState& ours,
                                   Deadline deadline) {
  std::vector<MeshState> states;
  for (const std::string& state : exchange(party, name, pack(ours), deadline))
    states.push_back(unpack_mesh_state(state));
  return states;
}

// Nobody's clock for connecting runs before all are here. `problem`: of the last try, which says more than who is late for this one.
void meet(const MeshOptions& options, const std::string& name, const std::string& problem,
          Deadline deadline) {
  try {
    exchange(options.party, name, "", deadline);
  } catch (const Error&) {
    if (problem.empty() || !deadline.passed()) throw;
    throw Error(ErrorKind::temporary, fmt::format("rank {}: {}", options.party.name(), problem));
  }
}

std::string what_next(const std::string& problem, Deadline deadline) {
  const bool may_be_blocked = problem.find("no answer") != std::string::npos;
  const auto left = std::chrono::ceil<std::chrono::seconds>(deadline.remaining());
  return fmt::format("{}; trying again for {} s",
                     may_be_blocked ? "; a firewall may block the ports of the ranks" : "", left.count());
}

}  // namespace

Mesh connect_mesh(const MeshOptions& options, Deadline deadline) {
  const std::string who = fmt::format("rank {}", options.party.name());
  std::string problem;
  for (int round = 1;; ++round) {
    const std::string name = fmt::format("gloo {} mesh {}", options.name, round);
    meet(options, name + " start", problem, deadline);
    const milliseconds time = std::clamp(deadline.remaining(), kShortestTry, kTryDeadline);
    Try made = try_mesh(options, name + "/", time);
    const auto states = swap_states(options.party, name + " end", made.state,
                                    Deadline(std::max(deadline.remaining(), time_for_answers(time))));
    const std::optional<std::string> found = describe_problem(states, options.party);
    if (!found) return std::move(made.mesh);
    problem = fmt::format("connecting with the others, try {}: {}", round, *found);
    std::this_thread::sleep_for(std::min(kFirstPause * (1 << std::min(round - 1, 5)), deadline.remaining()));
    if (deadline.passed()) throw Error(ErrorKind::temporary, fmt::format("{}: {}", who, problem));
    if (options.party.rank == 0) log_line(who, problem + what_next(problem, deadline));
  }
}

}  // namespace fleetrun::comm
