#include "comm/gloo/gloo_mesh.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
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
const std::string kProven = "proven";

// Gloo's addresses go through our authenticated store, under a name of their own.
class PrefixedStore : public gloo::rendezvous::Store {
 public:
  PrefixedStore(comm::Store& store, std::string prefix) : store_(store), prefix_(std::move(prefix)) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(prefix_ + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get(prefix_ + key, Deadline(kTryDeadline));
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, kTryDeadline); }
  void wait(const std::vector<std::string>& keys, const milliseconds& timeout) override {
    const Deadline deadline(timeout);
    for (const std::string& key : keys) store_.get(prefix_ + key, deadline);
  }

 private:
  comm::Store& store_;
  const std::string prefix_;
};

std::shared_ptr<gloo::Context> connect_all(const MeshOptions& options, const std::string& prefix,
                                           GlooWatch& watch, Deadline deadline) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = options.address;
  auto device = watch.device(gloo::transport::tcp::CreateDevice(attributes));
  auto context = std::make_shared<gloo::rendezvous::Context>(options.party.rank, options.party.size);
  context->setTimeout(std::max(deadline.remaining() / kGlooConnectFactor, milliseconds(1)));
  PrefixedStore store(options.party.store, prefix);
  context->connectFullMesh(store, device);
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
  std::string state;  // kProven, or why not
};

Try try_mesh(const MeshOptions& options, const std::string& prefix) {
  Try made;
  try {
    const Deadline deadline(kTryDeadline);
    made.mesh.watch = std::make_shared<GlooWatch>();
    made.mesh.context = connect_all(options, prefix, *made.mesh.watch, deadline);
    prove(options, *made.mesh.context, deadline);
    made.mesh.watch->begin(*made.mesh.context, ends_of_peers(*made.mesh.context, deadline));
    made.state = kProven;
  } catch (const std::exception& error) {  // Gloo's, the store's or our own: each ends this try
    made.state = error.what();
  }
  return made;
}

}  // namespace

Mesh connect_mesh(const MeshOptions& options, Deadline deadline) {
  for (int round = 1;; ++round) {
    const std::string name = fmt::format("gloo {} mesh {}", options.name, round);
    // Nobody's clock for connecting runs before all are here.
    exchange(options.party, name + " start", "", deadline);
    Try made = try_mesh(options, name + "/");
    const std::vector<std::string> states = exchange(options.party, name + " end", made.state, deadline);
    const auto unproven =
        std::find_if(states.begin(), states.end(), [](auto& state) { return state != kProven; });
    if (unproven == states.end()) return std::move(made.mesh);
    const int unproven_rank = static_cast<int>(unproven - states.begin());
    const std::string problem = fmt::format("connecting with the others, try {}: rank {} says: {}", round,
                                            options.party.name_of(unproven_rank), *unproven);
    const std::string who = fmt::format("rank {}", options.party.name());
    std::this_thread::sleep_for(std::min(kFirstPause * (1 << std::min(round - 1, 5)), deadline.remaining()));
    if (deadline.passed()) throw Error(ErrorKind::temporary, fmt::format("{}: {}", who, problem));
    if (options.party.rank == 0) log_line(who, problem + "; trying again");
  }
}

}  // namespace fleetrun::comm
