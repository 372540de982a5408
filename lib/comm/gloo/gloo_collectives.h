// The collectives, made of Gloo's new-style calls and of our own compositions of its sends and receives. Private to the
// Gloo backend. (No old-style algorithm classes: on the same context they make later calls stall for tens of
// milliseconds.)
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/collective/collective.h"

namespace gloo {
class Context;
}

namespace fleetrun::comm {

struct GlooCall {
  std::uint64_t number = 0;            // of the collective; the same on every rank
  std::chrono::milliseconds deadline;  // of each wait for another rank
};

// The caller keeps `scratch` between calls. Throws what Gloo throws.
void run_on_gloo(const std::shared_ptr<gloo::Context>& context, const Collective& collective,
                 const GlooCall& call, std::vector<std::byte>& scratch);

}  // namespace fleetrun::comm
