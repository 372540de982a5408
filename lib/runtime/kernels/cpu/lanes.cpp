#include "runtime/kernels/cpu/loops/lanes.h"

#include <atomic>

namespace fleetrun::runtime::cpu {
namespace {

std::atomic<std::int64_t> remainders = 0;

}  // namespace

std::int64_t remainders_met() { return remainders.load(std::memory_order_relaxed); }
void meet_remainder() { remainders.fetch_add(1, std::memory_order_relaxed); }

}  // namespace fleetrun::runtime::cpu
