#include "runtime/kernels/cpu/onednn/primitive_scope.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "support/counting_malloc.h"

namespace fleetrun::runtime::cpu::primitive_scope_test {
namespace {

using fleetrun::runtime::test::AllocationCount;

// A call of operator new that the compiler may not leave out.
char* taken(std::size_t bytes) { return static_cast<char*>(::operator new(bytes)); }
void freed(char* block) { ::operator delete(block); }

void warm_up() {
  const PrimitiveScope scope;
  freed(taken(1));
}

TEST_CASE("new inside a scope takes no memory from malloc, outside it does") {
  warm_up();
  AllocationCount count;
  {
    const PrimitiveScope scope;
    freed(taken(100));
  }
  const long inside = count.so_far();
  freed(taken(100));
  CHECK(inside == 0);
  CHECK(count.so_far() - inside == 1);
}

TEST_CASE("scopes use the same memory again for as long as it is freed") {
  warm_up();
  AllocationCount count;
  for (int i = 0; i < 100'000; ++i) {  // 100 MB in all, more than there is
    const PrimitiveScope scope;
    freed(taken(1000));
  }
  CHECK(count.so_far() == 0);
}

TEST_CASE("a block outlives its scope, keeps its bytes, and another thread frees it") {
  warm_up();
  char* block = nullptr;
  {
    const PrimitiveScope scope;
    block = taken(64);
    std::memset(block, 7, 64);
  }
  for (int i = 0; i < 1000; ++i) {
    const PrimitiveScope scope;
    char* other = taken(500);
    std::memset(other, 1, 500);
    freed(other);
  }
  CHECK(block[0] == 7);
  CHECK(block[63] == 7);
  std::thread([&] { freed(block); }).join();
}

TEST_CASE("when all chunks are alive, blocks come from malloc") {
  warm_up();
  constexpr int kBlocks = 2000;  // of 16 KiB: twice as much as the chunks hold
  std::vector<char*> blocks(kBlocks);
  AllocationCount count;
  {
    const PrimitiveScope scope;
    for (char*& block : blocks) block = taken(16 * 1024);
  }
  const long spilled = count.so_far();
  CHECK(spilled > 0);
  CHECK(spilled < kBlocks);
  for (char* block : blocks) freed(block);
  const PrimitiveScope scope;
  const long before = count.so_far();
  freed(taken(16 * 1024));
  CHECK(count.so_far() == before);
}

TEST_CASE("a thread that ends gives its chunk to the next") {
  for (int i = 0; i < 1000; ++i)  // more threads than chunks
    std::thread([] { warm_up(); }).join();
  std::thread([] {
    warm_up();
    AllocationCount count;
    const PrimitiveScope scope;
    freed(taken(100));
    CHECK(count.so_far() == 0);
  }).join();
}

TEST_CASE("blocks are aligned for any type, and every size is served") {
  const PrimitiveScope scope;
  for (const std::size_t bytes : {0, 1, 15, 16, 17, 4096, 70'000}) {
    char* block = taken(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % alignof(std::max_align_t) == 0);
    std::memset(block, 1, bytes);
    freed(block);
  }
}

}  // namespace
}  // namespace fleetrun::runtime::cpu::primitive_scope_test
