// A batch norm and the relu that alone reads it become one op, which looks at the image once less; so do their gradients.
//
//   batch_norm x -> b m v                         batch_norm_act x -> y m v
//   relu x=b -> y                           =>
//   relu_grad y dy -> b@GRAD                      batch_norm_act_grad x dy m v -> x@GRAD
//   batch_norm_grad x dy=b@GRAD m v -> x@GRAD
// Bits stay as they are.
#include "runtime/passes/batch_norms.h"
#include "runtime/passes/passes.h"

namespace fleetrun::runtime {
namespace {

int fuse_bn_act_forward(Program& program, const OpTable& ops) {
  Rewrite rewrite(program, ops);
  int found = 0;
  for (OpId relu = 0; relu < rewrite.size(); ++relu) {
    if (program.op(relu).type != "relu") continue;
    const OpId norm = trained_batch_norm(rewrite, rewrite.view(relu).input_id("x"));
    if (norm == kNone) continue;
    rewrite.replace({norm, relu}, relu,
                    fused_batch_norm(rewrite, norm, "batch_norm_act", {}, rewrite.view(relu).output_id("y")));
    ++found;
  }
  rewrite.finish();
  return found;
}

int fuse_bn_act_backward(Program& program, const OpTable& ops) {
  Rewrite rewrite(program, ops);
  int found = 0;
  for (OpId mask = 0; mask < rewrite.size(); ++mask) {
    if (program.op(mask).type != "relu_grad") continue;
    const OpView relu = rewrite.view(mask);
    const OpId forward = rewrite.writer_of_type(relu.input_id("y"), "batch_norm_act");
    if (forward == kNone) continue;
    const OpId norm = gradient_of_batch_norm(rewrite, rewrite.view(forward), relu.output_id("dx"));
    if (norm == kNone || rewrite.only_reader(relu.output_id("dx")) != norm) continue;
    rewrite.replace({mask, norm}, norm,
                    fused_batch_norm_grad(
                        rewrite, norm, "batch_norm_act_grad",
                        {{"dy", relu.input_id("dy")}, {"bias", rewrite.view(forward).input_id("bias")}}, {}));
    ++found;
  }
  rewrite.finish();
  return found;
}

}  // namespace

void fuse_bn_act(Program& program, const PassContext& context) {
  if (!device_has_all(context, "fuse_bn_act", {"batch_norm_act", "batch_norm_act_grad"})) return;
  const int forward = fuse_bn_act_forward(program, context.ops);
  tell_found(context, "fuse_bn_act", forward, fuse_bn_act_backward(program, context.ops));
}

}  // namespace fleetrun::runtime
