// Connects the ranks to each other over TCP, and proves that each peer is a rank. Private to the Gloo backend. Only
// here can strangers reach Gloo's ports.
#pragma once
#include <memory>
#include <string>

#include "base/run/run_key.h"
#include "comm/gloo/gloo_watch.h"
#include "comm/rendezvous/deadline.h"
#include "comm/rendezvous/exchange.h"

namespace gloo {
class Context;
}

namespace fleetrun::comm {

struct MeshOptions {
  Party party;
  RunKey key;
  std::string address;  // of the one interface to bind to; numeric
  std::string name;     // different for each mesh of the same ranks
};

struct Mesh {
  std::shared_ptr<GlooWatch> watch;  // shared with the thread that calls look()
  std::shared_ptr<gloo::Context>
      context;  // shared because Gloo's options require that; destroyed before the watch
};

// Makes a context with a connection to every rank. Each connection is proven by an exchange of HMACs over rank numbers
// and nonces. If a proof fails, tries again on new ports until the deadline. Throws Error(temporary) that says what was
// wrong with the last try.
Mesh connect_mesh(const MeshOptions& options, Deadline deadline);

}  // namespace fleetrun::comm
