// Memory that is registered with NCCL's communicators: they can send from it directly, and need not copy into buffers of their own.
// https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/bufferreg.html wants that all ranks register what a collective works on, or
// none does. So what cannot be registered is an error, and never ordinary memory instead.
#pragma once
#include <nccl.h>

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "comm/collective/communicator.h"

namespace fleetrun::cuda {

// Any thread may use it. It outlives the memory that it gives.
class NcclBuffers {
 public:
  // Memory of ncclMemAlloc, not zeroed. Throws Error(os) when there is not enough, Error(config) when NCCL is older than 2.19.
  std::unique_ptr<comm::Memory> allocate(std::size_t bytes);

  // Before a collective works on `data`, with a communicator that all ranks have joined. Does nothing for memory that it did not give, or that
  // is registered already.
  ncclResult_t register_with(ncclComm_t communicator, const void* data);
  void deregister_from(ncclComm_t communicator);  // which then ends
  void forget(ncclComm_t communicator);           // it was aborted, and its registrations with it

  std::size_t bytes() const;  // that it has given

 private:
  class Given;
  struct Buffer {
    std::byte* data;
    std::size_t bytes;
    std::map<ncclComm_t, void*> handles;  // by the communicator that has registered it
  };

  void free(std::list<Buffer>::iterator buffer);

  mutable std::mutex mutex_;
  std::list<Buffer> buffers_;
};

}  // namespace fleetrun::cuda
