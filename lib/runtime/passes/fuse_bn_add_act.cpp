// A batch norm, the addition that alone reads it, and the relu that alone reads the sum become one op. So do their gradients.
// If both sides of an addition are batch norms, the pass takes the first.
//
//   batch_norm x -> b m v                        batch_norm_add_act x z -> y m v
//   elementwise_add x=b y=z -> s
//   relu x=s -> y                          =>
//   relu_grad y dy -> s@GRAD                     batch_norm_add_act_grad x y dy m v -> x@GRAD dz=s@GRAD
//   batch_norm_grad x dy=s@GRAD m v -> x@GRAD
// s@GRAD is also the gradient of z, which other ops read. If dy is the sum of the gradients of two branches and no other op reads
// it, the op takes both (dy, dy_too) in place of the addition. The results stay the same to the bit.
#include "runtime/passes/passes.h"
#include "runtime/passes/shared/batch_norms.h"

namespace fleetrun::runtime {
namespace {

struct Residual {
  OpId norm = kNone;  // of the sum; kNone: neither side is one
  ValueId z = kNone;  // the other side
};

Residual residual_of(const Rewrite& rewrite, const OpView& add) {
  const ValueId x = add.input_id("x"), y = add.input_id("y");
  if (const OpId norm = trained_batch_norm(rewrite, x); norm != kNone) return {norm, y};
  if (const OpId norm = trained_batch_norm(rewrite, y); norm != kNone) return {norm, x};
  return {};
}

bool fuse_bn_add_act_forward(Rewrite& rewrite, OpId relu) {
  const OpId add = rewrite.writer_for_one(rewrite.view(relu).input_id("x"), "elementwise_add");
  if (add == kNone) return false;
  const auto [norm, z] = residual_of(rewrite, rewrite.view(add));
  if (norm == kNone) return false;
  rewrite.replace(
      {norm, add, relu}, relu,
      fused_batch_norm(rewrite, norm, "batch_norm_add_act", {{"z", z}}, rewrite.view(relu).output_id("y")));
  return true;
}

// What flows back out of a block: from one branch after it, or from two with the addition of both.
struct Gradient {
  ValueId one = kNone, other = kNone;
  OpId add = kNone;
};

Gradient gradient_of_branches(const Rewrite& rewrite, ValueId dy) {
  const OpId add = rewrite.writer_for_one(dy, "elementwise_add");
  if (add == kNone) return {.one = dy};
  const OpView sum = rewrite.view(add);
  return {sum.input_id("x"), sum.input_id("y"), add};
}

bool fuse_bn_add_act_backward(Rewrite& rewrite, OpId mask) {
  const OpView relu = rewrite.view(mask);
  const ValueId y = relu.input_id("y"), dz = relu.output_id("dx");
  const OpId forward = rewrite.writer_of_type(y, "batch_norm_add_act");
  if (forward == kNone) return false;
  const OpId norm = gradient_of_batch_norm(rewrite, rewrite.view(forward), dz);
  if (norm == kNone) return false;
  const Gradient dy = gradient_of_branches(rewrite, relu.input_id("dy"));
  std::vector<OpId> parts = {mask, norm};
  if (dy.add != kNone) parts.push_back(dy.add);
  rewrite.replace(parts, mask,  // there, as others read dz before the batch norm does
                  fused_batch_norm_grad(rewrite, norm, "batch_norm_add_act_grad",
                                        {{"y", y}, {"dy", dy.one}, {"dy_too", dy.other}}, {{"dz", dz}}));
  return true;
}

}  // namespace

void fuse_bn_add_act(Program& program, const PassContext& context) {
  if (!device_has_all(context, "fuse_bn_add_act", {"batch_norm_add_act", "batch_norm_add_act_grad"})) return;
  const int forward = rewrite_each(program, context.ops, "relu", fuse_bn_add_act_forward);
  if (forward == 0) return;  // on by default, and most networks have none
  const int backward = rewrite_each(program, context.ops, "relu_grad", fuse_bn_add_act_backward);
  tell_found(context, "fuse_bn_add_act", forward, backward);
}

}  // namespace fleetrun::runtime
