#include "cuda/logic/memory_pool.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::cuda {
namespace {

std::size_t rounded(std::size_t bytes) {
  return std::max(kPoolAlignment, (bytes + kPoolAlignment - 1) / kPoolAlignment * kPoolAlignment);
}

}  // namespace

MemoryPool::MemoryPool(std::size_t bytes) {
  if (const std::size_t whole = bytes / kPoolAlignment * kPoolAlignment; whole > 0) free_[0] = whole;
}

std::optional<std::size_t> MemoryPool::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t wanted = rounded(bytes);
  const auto found =
      std::find_if(free_.begin(), free_.end(), [&](auto& piece) { return piece.second >= wanted; });
  if (found == free_.end()) return std::nullopt;
  const auto [offset, size] = *found;
  free_.erase(found);
  if (size > wanted) free_[offset + wanted] = size - wanted;
  taken_[offset] = wanted;
  return offset;
}

void MemoryPool::give_back(std::size_t offset) {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(offset);
  if (found == taken_.end())
    throw Error(ErrorKind::internal,
                fmt::format("offset {} of a memory pool is given back, but was not taken", offset));
  auto piece = free_.emplace(offset, found->second).first;
  taken_.erase(found);
  if (const auto next = std::next(piece);
      next != free_.end() && piece->first + piece->second == next->first) {
    piece->second += next->second;
    free_.erase(next);
  }
  if (piece == free_.begin()) return;
  const auto before = std::prev(piece);
  if (before->first + before->second != piece->first) return;
  before->second += piece->second;
  free_.erase(piece);
}

std::size_t MemoryPool::largest_free() const {
  const std::lock_guard lock(mutex_);
  std::size_t largest = 0;
  for (const auto& [offset, bytes] : free_) largest = std::max(largest, bytes);
  return largest;
}

}  // namespace fleetrun::cuda
