// What the kernels of average_parameters read from the op, the same on every device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/graph/op_def.h"
#include "runtime/ops/rules/average_schedule.h"

namespace fleetrun::runtime::ops {

struct AveragedTensor {
  ValueId param, snapshot;
  std::int64_t begin, count;  // of its elements in the message
};

struct AverageOp {
  AverageSteps steps;
  ValueId schedule, loss, rate;  // kNone without adaptive_localsgd
  std::vector<AveragedTensor> tensors;
  std::int64_t elements = 0;  // of the message: all differences; the loss follows them

  std::size_t message_bytes() const { return static_cast<std::size_t>(elements + 1) * sizeof(float); }
};

// `alignment`: each tensor of the message begins at a multiple of so many elements. `elements_of` returns how many elements a value has in
// memory, with padding.
AverageOp read_average_op(const OpView& op, std::int64_t alignment,
                          const std::function<std::int64_t(const Value&)>& elements_of);

}  // namespace fleetrun::runtime::ops
