#include "runtime/graph/every_of.h"

namespace fleetrun::runtime {
namespace {

const std::string kEvery = "every";

}  // namespace

int every_of(const Op& op) {
  const auto found = op.attributes.find(kEvery);
  return found == op.attributes.end() ? 1 : static_cast<int>(std::get<std::int64_t>(found->second));
}

void set_every(Op& op, int steps) { op.attributes[kEvery] = std::int64_t{steps}; }

}  // namespace fleetrun::runtime
