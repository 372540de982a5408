// What batch_norm has in common with its fusions.
#pragma once
#include "runtime/graph/op_def.h"

namespace fleetrun::runtime::ops {

// Throws Error(config) when the input `name` is not f32 [C], C as x has it.
void expect_one_per_channel(const OpView& op, std::string_view name);

// Checks x, scale, bias, mean, variance and the attributes; sets y, batch_mean and batch_variance.
void infer_batch_norm(Inference& op);

// Checks x, dy, scale, batch_mean, batch_variance and epsilon; sets dx, dscale and dbias.
void infer_batch_norm_grad(Inference& op);

// Emits the op `type`: batch_norm_grad, or a fusion of it that reads `more`, too. Its outputs are the gradients of these
// inputs. Nothing when no gradient flows.
void emit_batch_norm_grad(GradientRule& rule, const std::string& type, const std::vector<std::string>& inputs,
                          const Arguments& more = {});

// Throws Error(config) in evaluation: the fusions are made of training programs only.
void expect_training(const OpView& op);

// Training, for images of this shape. Where a kink follows, few and spread values keep it clear of most of them.
Sample batch_norm_sample(const Shape& x, SampleInput::Fill fill = SampleInput::Fill::uniform);

}  // namespace fleetrun::runtime::ops
