// What tuning says about the published advice on speed, and about what it did not try.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/tune/tuned.h"

namespace fleetrun::runtime {

struct FindingFacts {
  SpaceFacts space;
  double wait_share = 0;   // of a step: it waits for its batch
  double fetch_share = 0;  // of a step: it fetches the loss
  std::size_t memory_bytes = 0;
  int loader_threads = 2;
};

// A line for each piece of advice, in a fixed order.
std::vector<std::string> findings(const Tuned& tuned, const FindingFacts& facts);

}  // namespace fleetrun::runtime
