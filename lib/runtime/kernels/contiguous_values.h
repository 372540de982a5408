// Values that lie one after the other in memory, as one message for a communicator.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "comm/collective/communicator.h"
#include "runtime/kernels/kernel.h"

namespace fleetrun::runtime {

class ContiguousValues {
 public:
  // All of one dtype. The padding of their layouts counts: zeros, which stay zeros.
  ContiguousValues(const Program& program, std::span<const ValueId> ids);

  // From the first byte of the first to the last of the last. Throws Error(internal) when they are not placed one
  // after the other, each at the next address that is aligned for it.
  BufferView view(const RunContext& context) const;

 private:
  struct Part {
    ValueId id;
    std::size_t bytes;
    std::string name;
  };
  std::vector<Part> parts_;
  DType dtype_;
};

}  // namespace fleetrun::runtime
