// Batch normalisation of each channel (Ioffe and Szegedy 2015, arXiv:1502.03167), as PaddlePaddle has it.
//   y = (x - m[c]) / sqrt(v[c] + epsilon) * scale[c] + bias[c]
//   training: m, v are mean and variance of channel c in this batch, v = sum (x - m)^2 / n with n = N*H*W.
//     They come out as batch_mean and batch_variance, and the running statistics move towards them in place:
//     mean = mean * momentum + m * (1 - momentum), variance likewise with the same v
//     (paddle/fluid/operators/batch_norm_op.cc; PyTorch's momentum is 1 - ours, and its running variance
//     takes sum (x - m)^2 / (n - 1)).
//   evaluation: m, v are the running statistics, which stay as they are; y is the only output
//   x [N, C, H, W] f32;  scale, bias, mean, variance, batch_mean, batch_variance [C] f32;  y like x
//   attributes: epsilon (usually 1e-5), momentum (usually 0.9), training
//   batch_norm_grad(x, dy, scale, batch_mean, batch_variance), with z = (x - m) / sqrt(v + epsilon):
//     dbias = sum dy;  dscale = sum dy * z
//     dx = scale / sqrt(v + epsilon) * (dy - dbias / n - z * dscale / n)
// Throws Error(config) when sizes do not fit, or when a gradient is asked for in evaluation. That training has more than one value
// per channel build_training_program sees to, which knows whether the values of other ranks count.
#include "runtime/ops/rules/batch_norm.h"

namespace fleetrun::runtime::ops {
namespace {

void grad_batch_norm(GradientRule& rule) {
  emit_batch_norm_grad(rule, "batch_norm_grad", {"x", "scale", "bias"});
}

std::vector<Sample> batch_norm_samples() {
  return {batch_norm_sample({4, 3, 5, 6}), batch_norm_sample({2, 17, 4, 3}), batch_norm_sample({2, 16, 4, 4}),
          batch_norm_sample({9, 5, 1, 1})};
}

}  // namespace

OpDef batch_norm() {
  return {.inputs = {"x", "scale", "bias", "mean", "variance"},
          .outputs = {"y", "mean", "variance", "batch_mean", "batch_variance"},
          .infer = infer_batch_norm,
          .gradient = grad_batch_norm,
          .samples = batch_norm_samples,
          .in_place = {"mean", "variance"},
          .may_share = {{"y", "x"}}};
}

OpDef batch_norm_grad() {
  return {.inputs = {"x", "dy", "scale", "batch_mean", "batch_variance"},
          .outputs = {"dx", "dscale", "dbias"},
          .infer = infer_batch_norm_grad,
          .may_share = {{"dx", "dy"}}};
}

}  // namespace fleetrun::runtime::ops
