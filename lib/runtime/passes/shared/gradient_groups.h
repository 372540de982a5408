// Which gradients travel together, as PaddlePaddle groups them (paddle/fluid/framework/ir/coalesce_grad_tensor_pass.cc).
#pragma once
#include <optional>
#include <vector>

#include "runtime/graph/op_def.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

struct GroupLimits {
  double megabytes = 32;                 // 0: one group of all, by name; below 0: a group for each layer
  double gradients = 50;                 // 1 or less: any number
  std::optional<double> last_megabytes;  // what is made last travels by itself, at most so much of it
};

using GradientGroups = std::vector<std::vector<ValueId>>;

// The gradients in the order in which the backward ops make them; those of one layer are one entry. A layer is what
// one op takes as its weights w and bias b. (FleetX's models call scale and offset of a batch norm by names without a
// dot, which makes a layer of each: ResNet-50's 161 gradients are 160 layers.)
GradientGroups layer_groups(const Program& program, const OpTable& ops);

// Layers are added to a group until it has more than `gradients` gradients or at least `megabytes` (of 2^20 bytes,
// without padding), so groups overshoot by a layer. A group of several dtypes is then split by dtype, in the order in
// which they appear.
GradientGroups gradient_groups(const Program& program, const OpTable& ops, const GroupLimits& limits);

}  // namespace fleetrun::runtime
