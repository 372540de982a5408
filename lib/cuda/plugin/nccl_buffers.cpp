#include "cuda/plugin/nccl_buffers.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/error/error.h"

// Since NCCL 2.19. With an older library these addresses are null, and the plug-in works without them.
extern "C" {
__attribute__((weak)) ncclResult_t ncclMemAlloc(void** data, std::size_t bytes);
__attribute__((weak)) ncclResult_t ncclMemFree(void* data);
__attribute__((weak)) ncclResult_t ncclCommRegister(const ncclComm_t communicator, void* data,
                                                    std::size_t bytes, void** handle);
__attribute__((weak)) ncclResult_t ncclCommDeregister(const ncclComm_t communicator, void* handle);
}

namespace fleetrun::cuda {

// Until it is freed, its communicators have it registered.
class NcclBuffers::Given : public comm::Memory {
 public:
  Given(NcclBuffers& buffers, std::list<Buffer>::iterator buffer) : buffers_(buffers), buffer_(buffer) {}
  ~Given() override { buffers_.free(buffer_); }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;
  void* data() override { return buffer_->data; }

 private:
  NcclBuffers& buffers_;
  const std::list<Buffer>::iterator buffer_;
};

std::unique_ptr<comm::Memory> NcclBuffers::allocate(std::size_t bytes) {
  if (ncclMemAlloc == nullptr || ncclMemFree == nullptr || ncclCommRegister == nullptr ||
      ncclCommDeregister == nullptr)
    throw Error(
        ErrorKind::config,
        "FLEETRUN_NCCL_REGISTER=1: found a NCCL that cannot register memory, wanted NCCL 2.19 or newer");
  void* data = nullptr;
  const ncclResult_t result = ncclMemAlloc(&data, std::max<std::size_t>(bytes, 1));
  cudaGetLastError();  // NCCL has reported it
  if (result != ncclSuccess)
    throw Error(ErrorKind::os, fmt::format("getting {} bytes of device memory from NCCL: {}", bytes,
                                           ncclGetErrorString(result)));
  const std::lock_guard lock(mutex_);
  return std::make_unique<Given>(*this,
                                 buffers_.insert(buffers_.end(), {static_cast<std::byte*>(data), bytes, {}}));
}

ncclResult_t NcclBuffers::register_with(ncclComm_t communicator, const void* data) {
  const std::lock_guard lock(mutex_);
  for (Buffer& buffer : buffers_) {
    const std::less<const void*> is_before;
    const bool is_inside = !is_before(data, buffer.data) && is_before(data, buffer.data + buffer.bytes);
    if (!is_inside || buffer.handles.contains(communicator)) continue;
    void* handle = nullptr;
    const ncclResult_t result = ncclCommRegister(communicator, buffer.data, buffer.bytes, &handle);
    if (result != ncclSuccess) return result;
    buffer.handles[communicator] = handle;
  }
  return ncclSuccess;
}

// What goes wrong at the end of a registration is of no use to anybody.
void NcclBuffers::deregister_from(ncclComm_t communicator) {
  const std::lock_guard lock(mutex_);
  for (Buffer& buffer : buffers_)
    if (const auto found = buffer.handles.extract(communicator))
      ncclCommDeregister(communicator, found.mapped());
}

void NcclBuffers::forget(ncclComm_t communicator) {
  const std::lock_guard lock(mutex_);
  for (Buffer& buffer : buffers_) buffer.handles.erase(communicator);
}

std::size_t NcclBuffers::bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const Buffer& buffer : buffers_) sum += buffer.bytes;
  return sum;
}

// Waits for the device first, as cudaFree does: NCCL would take the memory from collectives under way.
void NcclBuffers::free(std::list<Buffer>::iterator buffer) {
  cudaDeviceSynchronize();
  const std::lock_guard lock(mutex_);
  for (const auto& [communicator, handle] : buffer->handles) ncclCommDeregister(communicator, handle);
  ncclMemFree(buffer->data);
  buffers_.erase(buffer);
}

}  // namespace fleetrun::cuda
