// How often a test repeats what chance decides: scripts/soak asks for more than an ordinary run.
#pragma once
#include <cstdlib>

namespace fleetrun::testing {

// FLEETRUN_SOAK_COUNT of the environment, else `ordinary`.
inline int soak_count(int ordinary) {
  const char* asked = std::getenv("FLEETRUN_SOAK_COUNT");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return asked == nullptr ? ordinary : std::atoi(asked);   // NOLINT(cert-err34-c): scripts/soak checked it
}

}  // namespace fleetrun::testing
