#include <memory>
#include <vector>

#include <fmt/format.h>

#include "comm/collective/transport.h"
#include "comm/shared/shared_memory.h"
#include "comm/shared/shared_segments.h"

namespace fleetrun::comm {
namespace {

// Parties whose ranks have opened each other's segments before share these.
class SharedMemoryTransport : public Transport {
 public:
  TransportJoin join(const Party& party, const std::string& name, Deadline deadline) override {
    std::shared_ptr<SharedSegments> segments = find(party);
    if (!segments) {
      SegmentsJoin join = join_segments(party, fmt::format("shared memory {}", name), deadline);
      if (!join.segments) return {nullptr, "the ranks cannot share memory: " + join.problem};
      segments = join.segments;
      segments_.push_back(segments);
    }
    return {make_shared_memory({.party = party, .name = name, .join_deadline = deadline.remaining()},
                               std::move(segments)),
            ""};
  }

 private:
  std::shared_ptr<SharedSegments> find(const Party& party) const {
    for (const auto& segments : segments_)
      if (segments->hold(party)) return segments;
    return nullptr;
  }

  std::vector<std::shared_ptr<SharedSegments>> segments_;  // shared with the communicators on them
};

}  // namespace

std::unique_ptr<Transport> make_shared_memory_transport(const TransportFacts&) {
  return std::make_unique<SharedMemoryTransport>();
}

}  // namespace fleetrun::comm
