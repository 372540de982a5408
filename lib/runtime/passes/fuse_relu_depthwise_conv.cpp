// A depthwise convolution computes the relu that only it reads, so that relu(x) is no longer in memory.
//
//   relu x -> r                                    relu_depthwise x w -> y
//   conv2d x=r w -> y                         =>
//   conv2d_grad_weights x=r dy -> w@GRAD           relu_depthwise_grad_weights x dy -> w@GRAD
//   conv2d_grad_input dy w -> r@GRAD               relu_depthwise_grad_input dy w x -> x@GRAD
//   relu_grad y=r dy=r@GRAD -> x@GRAD
// Its sums have another order than oneDNN's. Runs before the fusions that would take the relu.
#include <optional>

#include "runtime/passes/passes.h"
#include "runtime/passes/shared/rewrite.h"

namespace fleetrun::runtime {
namespace {

bool is_depthwise(const OpView& conv) {
  const std::int64_t groups = conv.integer("groups");
  if (conv.input("x").dtype != DType::f32) return false;  // the kernels know nothing else
  return groups > 1 && conv.input("x").shape.at(1) == groups && conv.input("w").shape.at(0) == groups;
}

// The ops of one place; those of the backward part kNone where nobody wants that gradient.
struct Found {
  OpId relu = kNone, conv = kNone;
  OpId grad_weights = kNone, grad_input = kNone, mask = kNone;
};

// Whether the op is one of the two that read relu(x) on the way back.
bool take_backward(const Rewrite& rewrite, ValueId rectified, OpId reader, Found& found) {
  const OpView op = rewrite.view(reader);
  if (op.def().name == "conv2d_grad_weights" && op.input_id("x") == rectified &&
      found.grad_weights == kNone) {
    found.grad_weights = reader;
    return true;
  }
  if (op.def().name != "relu_grad" || op.input_id("y") != rectified || found.mask != kNone) return false;
  found.mask = reader;
  found.grad_input = rewrite.writer_of_type(op.input_id("dy"), "conv2d_grad_input");
  return found.grad_input != kNone && rewrite.only_reader(op.input_id("dy")) == reader;
}

std::optional<Found> find(const Rewrite& rewrite, OpId conv) {
  if (rewrite.program().op(conv).type != "conv2d" || !is_depthwise(rewrite.view(conv))) return std::nullopt;
  const ValueId rectified = rewrite.view(conv).input_id("x");
  Found found = {.relu = rewrite.writer_of_type(rectified, "relu"), .conv = conv};
  if (found.relu == kNone) return std::nullopt;
  for (const OpId reader : rewrite.readers(rectified))
    if (reader != conv && (reader == kNone || !take_backward(rewrite, rectified, reader, found)))
      return std::nullopt;
  return found;
}

void fuse(Rewrite& rewrite, const Found& found) {
  const ValueId x = rewrite.view(found.relu).input_id("x");
  const auto make = [&](const std::string& type, OpId like, const Arguments& inputs,
                        const Arguments& outputs) {
    const Op& op = rewrite.program().op(like);
    return rewrite.make(type, inputs, outputs, op.attributes, op.role);
  };
  const OpView conv = rewrite.view(found.conv);
  rewrite.replace(
      {found.relu, found.conv}, found.conv,
      make("relu_depthwise", found.conv, {{"x", x}, {"w", conv.input_id("w")}, {"b", conv.input_id("b")}},
           {{"y", conv.output_id("y")}}));
  if (found.grad_weights != kNone) {
    const OpView grad = rewrite.view(found.grad_weights);
    rewrite.replace(
        {found.grad_weights}, found.grad_weights,
        make("relu_depthwise_grad_weights", found.grad_weights, {{"x", x}, {"dy", grad.input_id("dy")}},
             {{"dw", grad.output_id("dw")}, {"db", grad.output_id("db")}}));
  }
  if (found.mask != kNone) {
    const OpView grad = rewrite.view(found.grad_input);
    rewrite.replace({found.grad_input, found.mask}, found.mask,
                    make("relu_depthwise_grad_input", found.grad_input,
                         {{"dy", grad.input_id("dy")}, {"w", grad.input_id("w")}, {"x", x}},
                         {{"dx", rewrite.view(found.mask).output_id("dx")}}));
  }
}

}  // namespace

void fuse_relu_depthwise_conv(Program& program, const PassContext& context) {
  if (!device_has_all(context, "fuse_relu_depthwise_conv",
                      {"relu_depthwise", "relu_depthwise_grad_input", "relu_depthwise_grad_weights"}))
    return;
  Rewrite rewrite(program, context.ops);
  int forward = 0, backward = 0;
  for (OpId op = 0; op < rewrite.size(); ++op)
    if (const auto found = find(rewrite, op)) {
      fuse(rewrite, *found);
      ++forward;
      backward += found->grad_weights != kNone || found->mask != kNone;
    }
  rewrite.finish();
  tell_found(context, "fuse_relu_depthwise_conv", forward, backward);
}

}  // namespace fleetrun::runtime
