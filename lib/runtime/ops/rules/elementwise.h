// What ops have in common that treat each element by itself.
#pragma once
#include <string>
#include <string_view>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {

// Throws Error(config) unless both inputs have one shape: "y is [2,3], dy is [3]; they must be alike".
void expect_alike(const OpView& op, std::string_view a, std::string_view b);

// y has the shape and the type of x.
void infer_y_like_x(Inference& op);
// dx has those of the first input, and dy the same shape.
void infer_dx_like_first(Inference& op);

// One op makes the gradient of x: NAME_grad reads `reads` and dy, and has the attributes of the forward op NAME.
void set_gradient_by_one_op(GradientRule& rule, Arguments reads);

// The argument of an activation that its gradient reads besides dy.
enum class GradientReads { x, y };

// The threshold of relu6 or its gradient, as the type of y holds it: otherwise a y that was cut to it could seem to be below it.
float relu6_threshold(const OpView& op);

// An op NAME with y = f(x), and its gradient NAME_grad with dx = g(x or y, dy). Samples have no numbers near 0.
OpDef activation(GradientReads reads);
OpDef activation_grad(GradientReads reads);

}  // namespace fleetrun::runtime::ops
