#include "cuda/plugin/nccl_memory.h"

#include <utility>

namespace fleetrun::cuda {

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)

namespace {

class RegisteredMemory : public comm::Memory {
 public:
  RegisteredMemory(std::shared_ptr<ncclComm_t> communicator, void* data, std::size_t bytes)
      : communicator_(std::move(communicator)), data_(data) {
    if (ncclCommRegister(*communicator_, data_, bytes, &handle_) != ncclSuccess) handle_ = nullptr;
  }
  ~RegisteredMemory() override {
    if (*communicator_ != nullptr && handle_ != nullptr) ncclCommDeregister(*communicator_, handle_);
    ncclMemFree(data_);
  }
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  void* data() override { return data_; }

 private:
  const std::shared_ptr<ncclComm_t> communicator_;
  void* const data_;
  void* handle_ = nullptr;  // null: the communicator does not know it, and copies what it needs
};

}  // namespace

std::unique_ptr<comm::Memory> allocate_registered(const std::shared_ptr<ncclComm_t>& communicator,
                                                  std::size_t bytes) {
  void* data = nullptr;
  if (bytes == 0 || ncclMemAlloc(&data, bytes) != ncclSuccess) return nullptr;
  return std::make_unique<RegisteredMemory>(communicator, data, bytes);
}

#else

std::unique_ptr<comm::Memory> allocate_registered(const std::shared_ptr<ncclComm_t>&, std::size_t) {
  return nullptr;
}

#endif

}  // namespace fleetrun::cuda
