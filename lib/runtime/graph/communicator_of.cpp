#include "runtime/graph/communicator_of.h"

namespace fleetrun::runtime {
namespace {

const std::string kCommunicator = "communicator";

}  // namespace

int communicator_of(const Op& op) {
  const auto found = op.attributes.find(kCommunicator);
  return found == op.attributes.end() ? 0 : static_cast<int>(std::get<std::int64_t>(found->second));
}

void set_communicator(Op& op, int communicator) {
  if (communicator == 0)
    op.attributes.erase(kCommunicator);
  else
    op.attributes[kCommunicator] = std::int64_t{communicator};
}

}  // namespace fleetrun::runtime
