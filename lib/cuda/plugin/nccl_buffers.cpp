#include "cuda/plugin/nccl_buffers.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "cuda/plugin/check.h"

namespace fleetrun::cuda {
namespace {

class NcclMemory : public comm::Memory {
 public:
  explicit NcclMemory(std::size_t bytes) {
    const ncclResult_t result = ncclMemAlloc(&data_, std::max<std::size_t>(bytes, 1));
    cudaGetLastError();  // NCCL has reported it
    if (result != ncclSuccess)
      throw Error(ErrorKind::os, fmt::format("getting {} bytes of device memory from NCCL: {}", bytes,
                                             ncclGetErrorString(result)));
  }
  // Unlike cudaFree, NCCL does not wait for kernels that may use the memory.
  ~NcclMemory() override {
    cudaDeviceSynchronize();
    ncclMemFree(data_);
  }
  NcclMemory(const NcclMemory&) = delete;
  NcclMemory& operator=(const NcclMemory&) = delete;
  void* data() override { return data_; }

 private:
  void* data_ = nullptr;
};

}  // namespace

std::unique_ptr<comm::Memory> take_nccl_memory(std::size_t bytes) {
  return std::make_unique<NcclMemory>(bytes);
}

class NcclBuffers::Held : public comm::Memory {
 public:
  Held(NcclBuffers& buffers, std::unique_ptr<comm::Memory> memory, std::list<Buffer>::iterator buffer)
      : buffers_(buffers), memory_(std::move(memory)), buffer_(buffer) {}
  ~Held() override { buffers_.free(buffer_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  void* data() override { return memory_->data(); }

 private:
  NcclBuffers& buffers_;
  const std::unique_ptr<comm::Memory> memory_;  // freed after it is deregistered
  const std::list<Buffer>::iterator buffer_;
};

std::unique_ptr<comm::Memory> NcclBuffers::hold(std::unique_ptr<comm::Memory> memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto buffer = buffers_.insert(buffers_.end(), {memory->data(), bytes, {}});
  return std::make_unique<Held>(*this, std::move(memory), buffer);
}

ncclResult_t NcclBuffers::register_with(ncclComm_t communicator) {
  const std::lock_guard lock(mutex_);
  for (Buffer& buffer : buffers_) {
    if (buffer.bytes == 0 || buffer.handles.contains(communicator)) continue;
    void* handle = nullptr;
    const ncclResult_t result = ncclCommRegister(communicator, buffer.data, buffer.bytes, &handle);
    if (result != ncclSuccess) return result;
    buffer.handles[communicator] = handle;
  }
  return ncclSuccess;
}

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

void NcclBuffers::free(std::list<Buffer>::iterator buffer) {
  const std::lock_guard lock(mutex_);
  for (const auto& [communicator, handle] : buffer->handles) ncclCommDeregister(communicator, handle);
  buffers_.erase(buffer);
}

}  // namespace fleetrun::cuda
