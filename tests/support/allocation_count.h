// How often a thread came to operator new. For test programs that link support/allocation_count.cpp.
#pragma once
#include <cstdint>

namespace fleetrun {

std::int64_t allocations_of_this_thread();

}  // namespace fleetrun
