#include "comm/aligned_memory.h"

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"

namespace fleetrun::comm {
namespace {

struct Free {
  void operator()(void* data) const { std::free(data); }
};

class AlignedMemory : public Memory {
 public:
  explicit AlignedMemory(std::unique_ptr<void, Free> data) : data_(std::move(data)) {}
  void* data() override { return data_.get(); }

 private:
  std::unique_ptr<void, Free> data_;
};

}  // namespace

std::unique_ptr<Memory> make_aligned_memory(std::size_t bytes) {
  const std::size_t pages = bytes / kMemoryAlignment + 1;  // at least one, and room after the last element
  std::unique_ptr<void, Free> data(std::aligned_alloc(kMemoryAlignment, pages * kMemoryAlignment));
  if (!data) throw Error(ErrorKind::os, fmt::format("no memory for a buffer of {} bytes", bytes));
  std::memset(data.get(), 0, pages * kMemoryAlignment);
  return std::make_unique<AlignedMemory>(std::move(data));
}

}  // namespace fleetrun::comm
