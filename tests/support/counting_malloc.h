// Counts every allocation of the process, on any thread, while a count is open; and those of each thread ever. Link counting_malloc.cpp,
// which takes the place of the C library's malloc and its kin; not for builds with sanitizers. Without AVX-512, what oneDNN itself
// allocates is left out.
#pragma once

namespace fleetrun::runtime::test {

class AllocationCount {
 public:
  AllocationCount();
  ~AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;

  long so_far() const;
};

// Since the calling thread began, whether or not a count is open.
long allocations_of_this_thread();

}  // namespace fleetrun::runtime::test
