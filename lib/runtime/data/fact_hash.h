// A hash of facts about data: equal for equal facts on every machine, and different for different ones.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace fleetrun::runtime {

// XXH3, 64 bits.
class FactHash {
 public:
  FactHash();
  ~FactHash();
  FactHash(const FactHash&) = delete;
  FactHash& operator=(const FactHash&) = delete;

  void add(const void* data, std::size_t bytes);
  void add(std::string_view text);  // with its end
  std::string text() const;         // 16 hexadecimal digits

 private:
  XXH3_state_s* const state_;
};

}  // namespace fleetrun::runtime
