// What every communicator must do: each case runs on each rank of a world, on whatever backend made it.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "comm/collective/communicator.h"

namespace fleetrun::testing {

struct CommunicatorCase {
  std::string name;
  std::function<void(comm::Communicator&)> body;  // throws when a result is wrong
};

// Every collective, with every dtype that it takes and with odd sizes, on memory of the host.
std::vector<CommunicatorCase> communicator_cases();

// For backends that sum in the order of the ranks wherever they sum: reduce gives its root the bits of all_reduce.
// On buffers that the communicator allocated, and on others.
void check_reduced_bits(comm::Communicator& communicator);

// Runs them, one after the other, on the same communicator.
void run_cases(comm::Communicator& communicator, const std::vector<CommunicatorCase>& cases);

// All of them, and that its own memory, which is the host's, is zeroed and aligned.
void run_all_cases(comm::Communicator& communicator);

}  // namespace fleetrun::testing
