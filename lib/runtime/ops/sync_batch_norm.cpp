// Batch normalisation by the statistics of all ranks' batches together, which may differ in size. The pass of the same name
// makes these ops of batch_norm and batch_norm_grad, and puts an all_reduce of `sums` between the two of a direction.
//   sync_batch_norm_sums(x, mean), for each channel c, with the running mean k = mean[c], which is alike on every rank:
//     sums[c] = sum (x - k);  sums[C + c] = sum (x - k)^2;  sums[2 C] = N*H*W: the values of a channel
//     Distances from k, not from 0, so that the variance is not a small difference of large sums.
//   sync_batch_norm(x, scale, bias, mean, variance, sums): what batch_norm does in training, with mean and variance from the sums
//   sync_batch_norm_grad_sums(x, dy, batch_mean, batch_variance), with m = batch_mean[c]:
//     sums[c] = sum dy;  sums[C + c] = sum dy * (x - m);  sums[2 C] = N*H*W
//     dscale, dbias as of batch_norm_grad, of this rank: they are summed over the ranks like all gradients of parameters
//   sync_batch_norm_grad(x, dy, scale, batch_mean, batch_variance, sums): the dx of batch_norm_grad, from the sums
//   x [N, C, H, W] f32;  sums [2 C + 1] f32;  the rest [C] f32;  attributes as of batch_norm, which trains
// Throws Error(config) when sizes do not fit.
#include <fmt/format.h>

#include "runtime/ops/rules/batch_norm.h"

namespace fleetrun::runtime::ops {
namespace {

Shape shape_of_sums(const OpView& op) { return {2 * op.input("x").shape.at(1) + 1}; }

void expect_sums(const OpView& op) {
  const Value& sums = op.input("sums");
  if (sums.shape != shape_of_sums(op) || sums.dtype != DType::f32)
    op.fail(fmt::format("sums is {} {}, wanted f32 {} for x {}", describe(sums.dtype), describe(sums.shape),
                        describe(shape_of_sums(op)), describe(op.input("x").shape)));
}

void expect_images(const OpView& op) {
  const Shape& x = op.input("x").shape;
  if (x.size() != 4) op.fail(fmt::format("x is {}, wanted [N, C, H, W]", describe(x)));
}

void expect_like_x(const OpView& op, std::string_view name) {
  const Shape &shape = op.input(name).shape, &x = op.input("x").shape;
  if (shape != x) op.fail(fmt::format("{} is {}, wanted {} like x", name, describe(shape), describe(x)));
}

void infer_sums(Inference& op) {
  expect_images(op);
  expect_one_per_channel(op, "mean");
  op.set_output("sums", shape_of_sums(op));
}

void infer_apply(Inference& op) {
  infer_batch_norm(op);
  expect_sums(op);
}

void infer_grad_sums(Inference& op) {
  expect_images(op);
  expect_like_x(op, "dy");
  for (const char* name : {"batch_mean", "batch_variance"}) expect_one_per_channel(op, name);
  const Shape channels = {op.input("x").shape[1]};
  op.set_output("sums", shape_of_sums(op));
  op.set_output("dscale", channels);
  op.set_output("dbias", channels);
}

void infer_grad(Inference& op) {
  expect_images(op);
  expect_like_x(op, "dy");
  for (const char* name : {"scale", "batch_mean", "batch_variance"}) expect_one_per_channel(op, name);
  expect_sums(op);
  op.set_output("dx", Shape(op.input("x").shape), op.input("x").dtype);
}

}  // namespace

OpDef sync_batch_norm_sums() { return {.inputs = {"x", "mean"}, .outputs = {"sums"}, .infer = infer_sums}; }

OpDef sync_batch_norm() {
  return {.inputs = {"x", "scale", "bias", "mean", "variance", "sums"},
          .outputs = {"y", "mean", "variance", "batch_mean", "batch_variance"},
          .infer = infer_apply,
          .in_place = {"mean", "variance"},
          .may_share = {{"y", "x"}}};
}

OpDef sync_batch_norm_grad_sums() {
  return {.inputs = {"x", "dy", "batch_mean", "batch_variance"},
          .outputs = {"sums", "dscale", "dbias"},
          .infer = infer_grad_sums};
}

OpDef sync_batch_norm_grad() {
  return {.inputs = {"x", "dy", "scale", "batch_mean", "batch_variance", "sums"},
          .outputs = {"dx"},
          .infer = infer_grad,
          .may_share = {{"dx", "dy"}}};
}

}  // namespace fleetrun::runtime::ops
