// One kind of connection between ranks. It makes the communicators of a backend, for any number of parties.
#pragma once
#include <memory>
#include <string>

#include "base/run/run_key.h"
#include "comm/collective/communicator.h"
#include "comm/rendezvous/deadline.h"
#include "comm/rendezvous/exchange.h"

namespace fleetrun::comm {

// Either all ranks get a communicator, or none does. Then `problem` is the same on all of them.
struct TransportJoin {
  std::unique_ptr<Communicator> communicator;
  std::string problem;  // "the ranks cannot share memory: rank 1 says: ..."
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Every rank of the party calls it with the same name. No other communicator of these ranks has that name.
  // Throws Error(temporary) that names the missing ranks.
  virtual TransportJoin join(const Party& party, const std::string& name, Deadline deadline) = 0;
};

// What this rank knows about the run before it connects to the others.
struct TransportFacts {
  RunKey key;
  std::string address;  // of the one interface to use; numeric
};

// One for each line of base/run/comm_backends.def: make_gloo_transport, ...
#define COMM_BACKEND(id, name, title, reach) \
  std::unique_ptr<Transport> make_##id##_transport(const TransportFacts& facts);
#include "base/run/comm_backends.def"
#undef COMM_BACKEND

}  // namespace fleetrun::comm
