// The segments of all ranks of one host, opened by each other once, for any number of communicators among them: what
// one of these finds in shared memory, all do.
#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/rendezvous/deadline.h"
#include "comm/rendezvous/exchange.h"
#include "comm/shared/shared_segment.h"

namespace fleetrun::comm {

// The front of a communicator: its control words, then a stage of two chunks for data that lies elsewhere.
constexpr std::size_t kStageStart = 4096;
constexpr std::size_t kChunkBytes = 256 << 10;  // staged at a time: two of them stay in a core's cache
constexpr std::size_t kFrontBytes = kStageStart + 2 * kChunkBytes;

// Ranks go by their names (Party::name_of). Communicators on it may be used by several threads, and are made by one.
class SharedSegments {
 public:
  // `front`: of `own`, for the first communicator. `peers`: by rank of the party, without our own place.
  SharedSegments(const Party& party, OwnSegment own, const OwnSegment::Front& front,
                 std::vector<std::optional<PeerSegment>> peers);

  bool hold(const Party& party) const;  // whether all its ranks are here

  // Ours for one communicator: zeroed, and there for as long as anybody looks at it. Throws Error(os).
  OwnSegment::Front take_front();
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
  std::optional<OwnSegment::Front> first_front_;  // until it is taken
  std::mutex mutex_;                              // of the peers: they map what they meet
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
