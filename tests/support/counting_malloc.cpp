#include "support/counting_malloc.h"

#include <dnnl.h>
#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

constinit std::atomic<bool> counting = false;
constinit std::atomic<long> allocations = 0;
constinit thread_local long allocations_here = 0;

// The code of oneDNN where its matrix products allocate what they pack, in every call: without AVX-512. Nobody can give them memory.
struct Code {
  std::uintptr_t begin = 0, end = 0;
};
constinit Code exempt;

int look_for_onednn(dl_phdr_info* object, std::size_t, void*) {
  if (std::string_view(object->dlpi_name).find("libdnnl") == std::string_view::npos) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i)
    if (const auto& part = object->dlpi_phdr[i]; part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0)
      exempt = {object->dlpi_addr + part.p_vaddr, object->dlpi_addr + part.p_vaddr + part.p_memsz};
  return 1;
}

__attribute__((constructor)) void exempt_onednn() {
  if ((dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) != dnnl_cpu_isa_avx512_core)
    dl_iterate_phdr(look_for_onednn, nullptr);
}

void note(const void* caller) {
  const auto from = reinterpret_cast<std::uintptr_t>(caller);
  if (from >= exempt.begin && from < exempt.end) return;
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
  note(__builtin_return_address(0));
  return __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_calloc(count, bytes);
}

void* realloc(void* block, std::size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_realloc(block, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  note(__builtin_return_address(0));
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
