// All replicas of a model start equal and take the same steps, so they must stay equal bit for bit. A rank whose
// weights differ computes wrongly or has bad memory, and its errors reach all ranks with the next sum.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/collective/communicator.h"

namespace fleetrun::runtime {

// Says which ranks' fingerprints differ from the others'; nothing when all are equal. `fingerprints`: by rank.
std::optional<std::string> find_difference(const std::vector<std::uint64_t>& fingerprints);

// Compares this rank's fingerprint of the weights with those of all others, on `communicator`, between two steps.
// Throws Error(diverged), with the same words on every rank.
void check_replicas(std::uint64_t fingerprint, std::int64_t step, comm::Communicator& communicator);

}  // namespace fleetrun::runtime
