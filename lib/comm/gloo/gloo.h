// Collectives over TCP by Gloo, for ranks on CPUs of one or several machines.
//
// Sums and barriers go over connections of our own (gloo_links.h), on the caller's thread. All calls into Gloo are made by one
// progress thread of the communicator; the caller hands its request over and waits, and allocates no memory for it. What Gloo throws there becomes our Error. What it throws in its
// own event-loop thread cannot be caught and ends the process: that takes bytes of a stranger on one of its
// ports, which are open only while the ranks connect with each other, on the one interface given here.
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
  std::string name = "0";             // apart from other communicators of the same ranks
  std::chrono::milliseconds join_deadline = std::chrono::seconds(300);
  std::chrono::milliseconds collective_deadline = std::chrono::seconds(300);  // of each wait for another rank
};

// Returns when this rank is connected with all others. Throws Error(temporary) that names who is missing.
std::unique_ptr<Communicator> make_gloo(const GlooOptions& options);

}  // namespace fleetrun::comm
