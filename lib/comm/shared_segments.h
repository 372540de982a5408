// The segments of all ranks of one host, opened by each other once, for any number of communicators among them: what
// one of these finds in shared memory, all do.
#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/deadline.h"
#include "comm/exchange.h"
#include "comm/shared_segment.h"

namespace fleetrun::comm {

// Ranks go by their names (Party::name_of). Several threads may use it.
class SharedSegments {
 public:
  // Both by rank of the party; our own place among the peers is empty.
  SharedSegments(const Party& party, OwnSegment own, std::vector<std::optional<PeerSegment>> peers);

  bool hold(const Party& party) const;  // whether all its ranks are here

  // Control words and stage of one communicator of ours: zeroed, and there for as long as anybody looks at them.
  OwnSegment::Front add_front(std::size_t bytes) { return own_.add_front(bytes); }
  std::unique_ptr<Memory> allocate(std::size_t bytes) { return own_.allocate(bytes); }
  SharedPlace place_of(const void* data, std::size_t bytes) const { return own_.place_of(data, bytes); }

  // Where a place in the segment of another rank lies here. Throws Error(os).
  std::byte* at(int name, const SharedPlace& place);
  // A pidfd of another rank: readable when its process has ended. -1: our own.
  int process(int name) const;

 private:
  std::size_t index_of(int name) const;

  const std::vector<int> names_;
  OwnSegment own_;
  std::mutex mutex_;  // of the peers: they map what they meet
  std::vector<std::optional<PeerSegment>> peers_;
};

// Either all ranks have them, or none has: then `problem` says the same on all of them.
struct SegmentsJoin {
  std::shared_ptr<SharedSegments> segments;  // shared by the communicators on it
  std::string problem;  // "rank 1 says: opening /proc/17/fd/9: Permission denied (errno 13)"
};

// `name`: apart from other joins of the same party. Throws Error(temporary) that names who is missing.
SegmentsJoin join_segments(const Party& party, const std::string& name, Deadline deadline);

}  // namespace fleetrun::comm
