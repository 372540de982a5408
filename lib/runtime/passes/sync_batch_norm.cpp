// Batch normalisation in training by the statistics of all ranks. Communicator 0 adds up its sums. Like the sums of the gradients,
// they have the order of the program, which is the same on every rank.
//
//   batch_norm x ... mean=m -> y       sync_batch_norm_sums x mean=m -> bn.sums
//                                 =>   all_reduce x=bn.sums
//                                      sync_batch_norm x ... mean=m sums=bn.sums -> y
//
//   batch_norm_grad x dy ...           sync_batch_norm_grad_sums x dy ... -> bn@GRAD.sums dscale dbias
//     -> dx dscale dbias          =>   all_reduce x=bn@GRAD.sums
//                                      sync_batch_norm_grad x dy ... sums=bn@GRAD.sums -> dx
// Runs before the fusions, which do not match the parts. Without these ops on the device it only tells so.
#include <utility>

#include <fmt/format.h>

#include "runtime/passes/passes.h"

namespace fleetrun::runtime {
namespace {

// "stem.bn" of "stem.bn.batch_mean".
std::string layer_of(const OpView& op, ValueId batch_mean) {
  const std::string& name = op.program().value(batch_mean).name;
  const std::string suffix = ".batch_mean";
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

class Rewriting {
 public:
  Rewriting(Program& program, const PassContext& context) : program_(program), context_(context) {}

  int run() {
    std::vector<Op> ops = std::exchange(program_.ops, {});
    for (Op& op : ops) {
      if (op.type == "batch_norm" && view(op).flag("training"))
        forward(op);
      else if (op.type == "batch_norm_grad")
        backward(op);
      else
        program_.ops.push_back(std::move(op));
    }
    return layers_;
  }

 private:
  OpView view(const Op& op) const { return {find_op(context_.ops, op.type), program_, op}; }

  void forward(Op& op) {
    const OpView of = view(op);
    const ValueId sums = add_sums(of, layer_of(of, of.output_id("batch_mean")) + ".sums");
    add({.type = "sync_batch_norm_sums",
         .inputs = {of.input_id("x"), of.input_id("mean")},
         .outputs = {sums},
         .role = op.role});
    all_reduce(sums);
    op.type = "sync_batch_norm";
    op.inputs.push_back(sums);
    add(std::move(op));
    ++layers_;
  }

  void backward(Op& op) {
    const OpView of = view(op);
    const ValueId x = of.input_id("x"), dy = of.input_id("dy"), mean = of.input_id("batch_mean"),
                  variance = of.input_id("batch_variance"), dx = of.output_id("dx");
    const ValueId sums = add_sums(of, layer_of(of, mean) + "@GRAD.sums");
    add({.type = "sync_batch_norm_grad_sums",
         .inputs = {x, dy, mean, variance},
         .outputs = {sums, of.output_id("dscale"), of.output_id("dbias")},
         .attributes = op.attributes,
         .role = op.role});
    all_reduce(sums);
    op.type = "sync_batch_norm_grad";
    op.inputs.push_back(sums);
    op.outputs = {dx};
    add(std::move(op));
  }

  ValueId add_sums(const OpView& op, const std::string& name) {
    return program_.add_value({.name = name, .shape = {2 * op.input("x").shape.at(1) + 1}});
  }

  void all_reduce(ValueId sums) {
    add({.type = "all_reduce",
         .inputs = {sums},
         .outputs = {sums},
         .attributes = {{"op", std::string("sum")}},
         .role = Role::communication});
  }

  void add(Op op) { program_.ops.push_back(std::move(op)); }

  Program& program_;
  const PassContext& context_;
  int layers_ = 0;
};

}  // namespace

void sync_batch_norm(Program& program, const PassContext& context) {
  for (const char* op :
       {"sync_batch_norm_sums", "sync_batch_norm", "sync_batch_norm_grad_sums", "sync_batch_norm_grad"})
    if (!context.device_has(op))
      return context.tell(
          fmt::format("sync_batch_norm: this device has no {}, each rank keeps to its own batch", op));
  const int layers = Rewriting(program, context).run();
  context.tell(
      fmt::format("sync_batch_norm: {} layers, {} all-reduces of their sums a step", layers, 2 * layers));
}

}  // namespace fleetrun::runtime
