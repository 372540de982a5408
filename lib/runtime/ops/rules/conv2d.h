// What conv2d has in common with its fusions: checks and shapes.
#pragma once
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {

// Each throws Error(config) when sizes do not fit each other.
void infer_conv2d(Inference& op);               // x, w, b? and the attributes; sets y
void infer_conv2d_grad_input(Inference& op);    // dy, w; sets dx
void infer_conv2d_grad_weights(Inference& op);  // x, dy; sets dw and db

// Emits the op `type`, which is conv2d_grad_weights or a fusion of it with the same arguments.
void emit_conv2d_grad_weights(GradientRule& rule, const std::string& type);

}  // namespace fleetrun::runtime::ops
