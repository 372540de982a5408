#include "runtime/kernels/cpu/onednn/primitive_scope.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

namespace fleetrun::runtime::cpu {

PrimitiveScope::PrimitiveScope() = default;
PrimitiveScope::~PrimitiveScope() = default;

}  // namespace fleetrun::runtime::cpu

#else

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace fleetrun::runtime::cpu {
namespace {

constexpr std::size_t kAlignment = alignof(std::max_align_t);
constexpr std::size_t kChunkBytes = 64 * 1024;  // several hundred primitives' worth
constexpr std::size_t kChunks = 256;            // 16 MiB of addresses; only what is touched takes memory

struct alignas(64) Chunk {
  std::atomic<bool> taken;  // by a thread
  std::atomic<int> live;    // blocks handed out and not yet freed
  std::size_t used;         // bytes handed out; touched by the owner only
  alignas(64) std::array<std::byte, kChunkBytes> bytes;
};

// Global because operator new is. Zeroed by the loader, before anything can allocate.
constinit std::array<Chunk, kChunks> chunks{};

bool ours(const void* block) {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const auto begin = reinterpret_cast<std::uintptr_t>(chunks.data());
  return address >= begin && address < begin + sizeof chunks;
}

Chunk& chunk_of(const void* block) {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(chunks.data());
  return chunks[offset / sizeof(Chunk)];
}

// The chunk that this thread takes blocks from. A chunk that is given up with live blocks in it can be taken
// by anybody once they are freed.
struct Current {
  Chunk* chunk = nullptr;

  ~Current() { give_up(); }

  void give_up() {
    if (chunk != nullptr) chunk->taken.store(false, std::memory_order_release);
    chunk = nullptr;
  }

  // Starts the chunk anew if nothing in it is alive.
  void refresh() {
    if (chunk != nullptr && chunk->live.load(std::memory_order_acquire) == 0) chunk->used = 0;
  }

  void take_another() {
    give_up();
    for (Chunk& candidate : chunks) {
      if (candidate.taken.exchange(true, std::memory_order_acquire)) continue;
      if (candidate.live.load(std::memory_order_acquire) == 0) {
        chunk = &candidate;
        chunk->used = 0;
        return;
      }
      candidate.taken.store(false, std::memory_order_release);
    }
  }

  void* take(std::size_t bytes) {
    if (chunk == nullptr || chunk->used + bytes > kChunkBytes) take_another();
    if (chunk == nullptr) return nullptr;
    void* const block = chunk->bytes.data() + chunk->used;
    chunk->used += bytes;
    chunk->live.fetch_add(1, std::memory_order_relaxed);
    return block;
  }
};

constinit thread_local int depth = 0;  // of scopes open on this thread
thread_local Current current;

void* from_malloc(std::size_t bytes) {
  for (;;) {
    if (void* const block = std::malloc(bytes == 0 ? 1 : bytes)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void* allocate(std::size_t bytes) {
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  if (depth > 0 && bytes < kChunkBytes / 2)
    if (void* const block = current.take(rounded)) return block;
  return from_malloc(bytes);
}

void release(void* block) noexcept {
  if (ours(block))
    chunk_of(block).live.fetch_sub(1, std::memory_order_release);
  else
    std::free(block);
}

}  // namespace

PrimitiveScope::PrimitiveScope() {
  if (depth == 0) current.refresh();
  ++depth;
}

PrimitiveScope::~PrimitiveScope() { --depth; }

}  // namespace fleetrun::runtime::cpu

// The other forms of new and delete in libstdc++ call these two.
void* operator new(std::size_t bytes) { return fleetrun::runtime::cpu::allocate(bytes); }
void operator delete(void* block) noexcept { fleetrun::runtime::cpu::release(block); }
void operator delete(void* block, std::size_t) noexcept { fleetrun::runtime::cpu::release(block); }

#endif
