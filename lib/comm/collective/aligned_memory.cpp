#include "comm/collective/aligned_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::comm {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20U;  // bytes
constexpr std::size_t kFewPages = 2 * kHugePage;          // less than this stays on small pages

[[noreturn]] void fail(std::size_t bytes) {
  throw Error(ErrorKind::os, fmt::format("no memory for a buffer of {} bytes", bytes));
}

class SmallPages : public Memory {
 public:
  explicit SmallPages(std::size_t bytes) : data_(std::aligned_alloc(kMemoryAlignment, bytes)) {
    if (!data_) fail(bytes);
    std::memset(data_.get(), 0, bytes);
  }
  void* data() override { return data_.get(); }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  std::unique_ptr<void, Free> data_;
};

// Zeroed by the kernel when it is first touched, 2 MiB at once where it has such pages: with 4 KiB pages the faults alone
// would take as long as a pass over the memory, and tensors would need more entries of the TLB than there are.
class HugePages : public Memory {
 public:
  explicit HugePages(std::size_t bytes) : size_(bytes + kHugePage) {
    mapping_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping_ == MAP_FAILED) fail(bytes);
    const auto start = reinterpret_cast<std::uintptr_t>(mapping_);
    data_ = static_cast<std::byte*>(mapping_) + (kHugePage - start % kHugePage) % kHugePage;
    ::madvise(data_, bytes, MADV_HUGEPAGE);  // where it is refused, small pages serve
  }
  ~HugePages() override { ::munmap(mapping_, size_); }
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;
  void* data() override { return data_; }

 private:
  std::size_t size_;
  void* mapping_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace

std::unique_ptr<Memory> make_aligned_memory(std::size_t bytes) {
  const std::size_t pages = bytes / kMemoryAlignment + 1;  // at least one, and room after the last element
  const std::size_t rounded = pages * kMemoryAlignment;
  if (rounded < kFewPages) return std::make_unique<SmallPages>(rounded);
  return std::make_unique<HugePages>(rounded);
}

}  // namespace fleetrun::comm
