// The end of what a program could not write to its output, such as to a log on a full disk. Lies in memory that starts as zeros; another process
// reads it when the program has ended.
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
  static constexpr std::size_t kBytes = 4096;  // that are kept

  void add(std::string_view text);  // from any thread
  std::string read() const;         // without the part of a line that it begins with, if text was dropped

 private:
  std::atomic<std::uint64_t> added_;  // bytes, of which the last ones are kept
  std::array<std::atomic<char>, kBytes> kept_;
};
static_assert(std::atomic<char>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace fleetrun
