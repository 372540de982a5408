// Appends the backward part of a program: each forward op's gradient rule, last op first.
#pragma once
#include "runtime/graph/builder.h"

namespace fleetrun::runtime {

// `loss` has the shape [1]. The gradient of a value `x` is called `x@GRAD`; that of a parameter becomes a
// value of kind gradient. Where several ops read a value, their gradients are summed by elementwise_add.
// The gradient of the loss itself starts as 1, made by the op `fill` named `<loss>@GRAD`.
// Throws Error(internal) when a parameter is reached by no gradient, or a rule is missing on the way.
void append_backward(Builder& builder, ValueId loss);

}  // namespace fleetrun::runtime
