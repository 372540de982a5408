#include "support/counting_malloc.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

constinit std::atomic<bool> counting = false;
constinit std::atomic<long> allocations = 0;
constinit thread_local long allocations_here = 0;

void note() {
  ++allocations_here;
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

extern "C" {
// What glibc calls its own functions, for programs that replace them.
// NOLINTBEGIN(bugprone-reserved-identifier)
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
// NOLINTEND(bugprone-reserved-identifier)

void* malloc(std::size_t bytes) {
  note();
  return __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t bytes) {
  note();
  return __libc_calloc(count, bytes);
}

void* realloc(void* block, std::size_t bytes) {
  note();
  return __libc_realloc(block, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  note();
  *block = __libc_memalign(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}
}

namespace fleetrun::runtime::test {

AllocationCount::AllocationCount() {
  allocations = 0;
  counting = true;
}

AllocationCount::~AllocationCount() { counting = false; }

long AllocationCount::so_far() const { return allocations; }

long allocations_of_this_thread() { return allocations_here; }

}  // namespace fleetrun::runtime::test
