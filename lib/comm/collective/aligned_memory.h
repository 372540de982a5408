// Memory private to this process, for communicators that need no special memory.
#pragma once
#include <cstddef>
#include <memory>

#include "comm/collective/communicator.h"

namespace fleetrun::comm {

constexpr std::size_t kMemoryAlignment = 4096;  // bytes: a page, so that it could be registered or shared

// Zeroed. Throws Error(os) that names the size.
std::unique_ptr<Memory> make_aligned_memory(std::size_t bytes);

}  // namespace fleetrun::comm
