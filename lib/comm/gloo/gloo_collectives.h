// The collectives themselves, on Gloo's new-style calls and our own compositions of its sends and receives.
// Inside of the Gloo backend. (Old-style algorithm classes on the same context make later calls stall for
// tens of milliseconds, so there are none.)
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

// `scratch` is kept by the caller from one call to the next. Throws what Gloo throws.
void run_on_gloo(const std::shared_ptr<gloo::Context>& context, const Collective& collective,
                 const GlooCall& call, std::vector<std::byte>& scratch);

}  // namespace fleetrun::comm
