#include "runtime/optim/sparse_states.h"

namespace fleetrun::runtime {
namespace {

constexpr std::size_t kVelocity = 1, kResidual = 2;  // outputs of dgc_select

std::vector<ValueId> outputs_of_select(const Program& program, std::size_t output) {
  std::vector<ValueId> ids;
  for (const Op& op : program.ops)
    if (op.type == "dgc_select") ids.push_back(op.outputs[output]);
  return ids;
}

}  // namespace

std::vector<ValueId> residuals_of(const Program& program) { return outputs_of_select(program, kResidual); }

std::vector<ValueId> sparse_velocities_of(const Program& program) {
  return outputs_of_select(program, kVelocity);
}

std::int64_t steps_before_sparse(const Program& program) {
  for (const Op& op : program.ops)
    if (op.type == "dgc_select") return std::get<std::int64_t>(op.attributes.at("rampup_begin_step"));
  return 0;
}

}  // namespace fleetrun::runtime
