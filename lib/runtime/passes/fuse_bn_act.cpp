// A batch norm and the relu that alone reads it become one op, which reads the image once less. So do their gradients.
//
//   batch_norm x -> b m v                         batch_norm_act x -> y m v
//   relu x=b -> y                           =>
//   relu_grad y dy -> b@GRAD                      batch_norm_act_grad x dy m v -> x@GRAD
//   batch_norm_grad x dy=b@GRAD m v -> x@GRAD
// The results stay the same to the bit.
#include "runtime/passes/passes.h"
#include "runtime/passes/shared/batch_norms.h"

namespace fleetrun::runtime {
namespace {

bool fuse_bn_act_forward(Rewrite& rewrite, OpId relu) {
  const OpId norm = trained_batch_norm(rewrite, rewrite.view(relu).input_id("x"));
  if (norm == kNone) return false;
  rewrite.replace({norm, relu}, relu,
                  fused_batch_norm(rewrite, norm, "batch_norm_act", {}, rewrite.view(relu).output_id("y")));
  return true;
}

bool fuse_bn_act_backward(Rewrite& rewrite, OpId mask) {
  const OpView relu = rewrite.view(mask);
  const OpId forward = rewrite.writer_of_type(relu.input_id("y"), "batch_norm_act");
  if (forward == kNone) return false;
  const OpId norm = gradient_of_batch_norm(rewrite, rewrite.view(forward), relu.output_id("dx"));
  if (norm == kNone || rewrite.only_reader(relu.output_id("dx")) != norm) return false;
  rewrite.replace({mask, norm}, norm,
                  fused_batch_norm_grad(
                      rewrite, norm, "batch_norm_act_grad",
                      {{"dy", relu.input_id("dy")}, {"bias", rewrite.view(forward).input_id("bias")}}, {}));
  return true;
}

}  // namespace

void fuse_bn_act(Program& program, const PassContext& context) {
  if (!device_has_all(context, "fuse_bn_act", {"batch_norm_act", "batch_norm_act_grad"})) return;
  const int forward = rewrite_each(program, context.ops, "relu", fuse_bn_act_forward);
  const int backward = rewrite_each(program, context.ops, "relu_grad", fuse_bn_act_backward);
  tell_found(context, "fuse_bn_act", forward, backward);
}

}  // namespace fleetrun::runtime
