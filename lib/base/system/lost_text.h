// The end of the text that a program could not write to its output, such as to a log on a full disk. The memory of this object starts as zeros,
// and another process reads it when the program has ended.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fleetrun {

class LostText {
 public:
  static constexpr std::size_t kBytes = 4096;  // more is not kept

  // From any thread. Returns the place at which the text ends: the bytes that were added so far.
  std::uint64_t add(std::string_view text);
  void forget_before(std::uint64_t place);
  // If older text was dropped, the result begins with the first line that is complete.
  std::string read() const;

 private:
  std::atomic<std::uint64_t> added_, forgotten_;
  std::array<std::atomic<char>, kBytes> kept_;
};
static_assert(std::atomic<char>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace fleetrun
