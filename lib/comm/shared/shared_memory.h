// Collectives through memory that all ranks share, for ranks of one host: threads or processes of one user.
//
// What lies in memory of allocate() is reduced where it is, each rank a slice; other buffers pass through a
// small stage in chunks. A rank whose process ends is noticed within a fraction of a second.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "comm/collective/communicator.h"
#include "comm/rendezvous/exchange.h"
#include "comm/shared/shared_segments.h"

namespace fleetrun::comm {

struct SharedMemoryOptions {
  Party party;             // used to join only
  std::string name = "0";  // apart from other communicators of the same party
  std::chrono::milliseconds join_deadline = std::chrono::seconds(300);
  std::chrono::milliseconds collective_deadline = std::chrono::seconds(300);  // of each wait for another rank
};

// Either all ranks have a communicator, or none has: then `problem` says the same on all of them.
struct SharedMemoryJoin {
  std::unique_ptr<Communicator> communicator;
  std::string problem;
  std::shared_ptr<SharedSegments> segments;  // for more communicators
};

// Throws Error(temporary) that names who is missing.
SharedMemoryJoin join_shared_memory(const SharedMemoryOptions& options);

// One more communicator of the ranks that have joined, or of some of them. Memory that any communicator of these
// segments has allocated is shared memory for all of them. Throws Error(temporary) that names who is missing.
std::unique_ptr<Communicator> make_shared_memory(const SharedMemoryOptions& options,
                                                 std::shared_ptr<SharedSegments> segments);

}  // namespace fleetrun::comm
