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

// The gradient of x is made by one op, which gets dy, these `reads` and the attributes of the forward op.
void set_gradient_by(GradientRule& rule, const std::string& op, Arguments reads);

// An op y = f(x), and its gradient op dx = g(`reads`, dy), which reads x or y. Samples are of any numbers but those near 0.
OpDef activation(const std::string& name, void (*gradient)(GradientRule&));
OpDef activation_grad(const std::string& name, const std::string& reads);

}  // namespace fleetrun::runtime::ops
