// Connects the ranks with each other over TCP and proves that it was them who connected. Inside of the Gloo
// backend; the only place that meets strangers on Gloo's ports.
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
  std::string name;     // apart from other meshes of the same ranks
};

struct Mesh {
  std::shared_ptr<GlooWatch> watch;  // shared with the thread that looks
  std::shared_ptr<gloo::Context>
      context;  // shared because Gloo's options ask for it so; goes before the watch
};

// A context with a connection to every rank, each proven by an exchange of HMACs over rank numbers and
// nonces. What cannot be proven is built again on new ports, until the deadline. Throws Error(temporary) that
// says what was wrong with the last try.
Mesh connect_mesh(const MeshOptions& options, Deadline deadline);

}  // namespace fleetrun::comm
