// Memory that NCCL allocates and that a communicator knows (user buffer registration): its collectives can read and write it where it lies,
// and switches of NVLink can reduce it.
#pragma once
#include <nccl.h>

#include <cstddef>
#include <memory>

#include "comm/collective/communicator.h"

namespace fleetrun::cuda {

// `communicator` becomes null when it ends. The contents are undefined. Returns null if NCCL has no such memory, or not so much.
std::unique_ptr<comm::Memory> allocate_registered(const std::shared_ptr<ncclComm_t>& communicator,
                                                  std::size_t bytes);

}  // namespace fleetrun::cuda
