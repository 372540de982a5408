// A world whose ranks are threads of this process: for tests of everything above the communicators.
// It also notices ranks that call different collectives, and ranks that are gone (their communicator
// destroyed).
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/collective/communicator.h"

namespace fleetrun::comm {

struct ThreadWorldOptions {
  std::chrono::milliseconds deadline = std::chrono::minutes(4);  // of each wait for another rank
  // Called by each rank before its collective with that number (from 1); what it throws is the rank's
  // failure.
  std::function<void(int rank, std::uint64_t number)> before_each = nullptr;
};

// By rank. Each belongs to one thread.
std::vector<std::unique_ptr<Communicator>> make_thread_world(int size, ThreadWorldOptions options = {});

}  // namespace fleetrun::comm
