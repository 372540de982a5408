#include "runtime/ops/rules/sparse_schedule.h"

#include <algorithm>

#include <fmt/format.h>

namespace fleetrun::runtime::ops {

// As PaddlePaddle's dgc_op.h: each entry counts for an equal part of rampup_step, and the last one from then on.
std::int64_t SparseSchedule::kept_in(std::int64_t step) const {
  if (step < rampup_begin_step) return 0;
  const auto entries = static_cast<std::int64_t>(kept.size());
  const std::int64_t entry = std::min((step - rampup_begin_step) * entries / rampup_step, entries - 1);
  return kept[static_cast<std::size_t>(entry)];
}

std::int64_t SparseSchedule::most() const { return *std::max_element(kept.begin(), kept.end()); }

SparseSchedule sparse_schedule_of(const OpView& op, std::int64_t elements) {
  SparseSchedule schedule = {op.integer("rampup_begin_step"), op.integer("rampup_step"), op.integers("kept")};
  if (schedule.rampup_begin_step < 0)
    op.fail(fmt::format("rampup_begin_step is {}, must be 0 or more", schedule.rampup_begin_step));
  if (schedule.rampup_step < 1)
    op.fail(fmt::format("rampup_step is {}, must be 1 or more", schedule.rampup_step));
  if (schedule.kept.empty()) op.fail("kept is empty, wanted a number of elements");
  for (const std::int64_t kept : schedule.kept)
    if (kept < 1 || kept > elements)
      op.fail(fmt::format("kept has {}, wanted 1 to {} elements", kept, elements));
  return schedule;
}

void add_attributes(const SparseSchedule& schedule, Attributes& attributes) {
  attributes["rampup_begin_step"] = schedule.rampup_begin_step;
  attributes["rampup_step"] = schedule.rampup_step;
  attributes["kept"] = schedule.kept;
}

}  // namespace fleetrun::runtime::ops
