// Hands out pieces of one block of memory, as offsets: the share of a device that was taken at the start.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>

namespace fleetrun::cuda {

constexpr std::size_t kPoolAlignment = 256;  // bytes, that of cudaMalloc

class MemoryPool {
 public:
  explicit MemoryPool(std::size_t bytes);

  // The lowest offset with room for so many bytes; nothing when there is none.
  std::optional<std::size_t> take(std::size_t bytes);

  // `offset` was taken and not given back yet. What is free beside it becomes one piece with it.
  void give_back(std::size_t offset);

  std::size_t largest_free() const;  // bytes

 private:
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;   // offset -> bytes
  std::map<std::size_t, std::size_t> taken_;  // offset -> bytes
};

}  // namespace fleetrun::cuda
