#include "runtime/data/fact_hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace fleetrun::runtime {

FactHash::FactHash() : state_(XXH3_createState()) { XXH3_64bits_reset(state_); }
FactHash::~FactHash() { XXH3_freeState(state_); }

void FactHash::add(const void* data, std::size_t bytes) { XXH3_64bits_update(state_, data, bytes); }

void FactHash::add(std::string_view text) {
  add(text.data(), text.size());
  add("", 1);
}

std::string FactHash::text() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_)); }

}  // namespace fleetrun::runtime
