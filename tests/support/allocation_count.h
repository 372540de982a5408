// How often a thread allocated: tests link allocation_count_test.cpp's operator new.
#pragma once
#include <cstdint>

namespace fleetrun {

std::int64_t allocations_of_this_thread();

}  // namespace fleetrun
