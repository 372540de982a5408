// Collectives over TCP by Gloo, for ranks on CPUs of one or several machines.
//
// Sums and barriers go over our own connections (gloo_links.h), on the caller's thread. For everything else, the caller
// hands its request to a progress thread of the communicator, the only thread that calls Gloo, and waits. Requests
// need no new memory. An exception of Gloo on the progress thread becomes our Error. An exception on Gloo's own
// event-loop thread cannot be caught and ends the process. Only bytes of a stranger on one of Gloo's ports cause that;
// these ports are open only while the ranks connect to each other, and only on the interface given here.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "base/run/run_key.h"
#include "comm/collective/communicator.h"
#include "comm/rendezvous/deadline.h"
#include "comm/rendezvous/exchange.h"

namespace fleetrun::comm {

struct GlooOptions {
  Party party;  // its store must outlive the communicator
  RunKey key;
  std::string address = "127.0.0.1";  // of the one interface to bind to; numeric
  std::string name = "0";             // different for each communicator of the same ranks
  std::chrono::milliseconds join_deadline = std::chrono::seconds(300);
  std::chrono::milliseconds collective_deadline = std::chrono::seconds(300);  // of each wait for another rank
};

// Returns when this rank is connected to all others. Throws Error(temporary) that names the missing ranks.
std::unique_ptr<Communicator> make_gloo(const GlooOptions& options);

}  // namespace fleetrun::comm
