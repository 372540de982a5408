// How much of a gradient the ranks exchange in a step of strategy.dgc: attributes that its ops share.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {

struct SparseSchedule {
  std::int64_t rampup_begin_step = 0;  // steps in which the whole gradient is summed
  std::int64_t rampup_step = 1;        // steps in which the entries of `kept` follow each other
  std::vector<std::int64_t> kept;      // elements that a rank sends

  // In the step that is number `step` from 0; 0: the whole gradient is summed.
  std::int64_t kept_in(std::int64_t step) const;
  std::int64_t most() const;  // of `kept`
};

// Throws Error(config) unless the attributes rampup_begin_step, rampup_step and kept fit to `elements`.
SparseSchedule sparse_schedule_of(const OpView& op, std::int64_t elements);

void add_attributes(const SparseSchedule& schedule, Attributes& attributes);

}  // namespace fleetrun::runtime::ops
