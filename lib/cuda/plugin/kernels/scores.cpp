// The ops that compare scores with labels, and means. The host reports a label that is not a class when it waits for the
// device, at the next fetch; the loss does not count its sample.
#include "cuda/plugin/simple_kernel.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

struct Table {
  int rows, classes;
  BadLabel* bad;

  Table(const OpView& op, Device& device, const Value& scores)
      : rows(narrow(op, scores.shape[0])),
        classes(narrow(op, scores.shape[1])),
        bad(as_cuda(device).watch_labels(op.def().name, classes)) {
    elements_of(op, scores);
  }
};

std::unique_ptr<Kernel> make_loss(const OpView& op, Device& device) {
  return simple_kernel(op, device,
                       [table = Table(op, device, op.input("logits")), logits = op.input_id("logits"),
                        label = op.input_id("label"), softmax = op.output_id("softmax"),
                        loss = op.output_id("loss")](const RunContext& context, cudaStream_t stream) {
                         cross_entropy(at(context, logits), at<int>(context, label), at(context, softmax),
                                       at(context, loss), table.rows, table.classes, table.bad, stream);
                       });
}

std::unique_ptr<Kernel> make_loss_grad(const OpView& op, Device& device) {
  return simple_kernel(op, device,
                       [table = Table(op, device, op.input("softmax")), softmax = op.input_id("softmax"),
                        label = op.input_id("label"), dloss = op.input_id("dloss"),
                        dlogits = op.output_id("dlogits")](const RunContext& context, cudaStream_t stream) {
                         cross_entropy_grad(at(context, softmax), at<int>(context, label), at(context, dloss),
                                            at(context, dlogits), table.rows, table.classes, table.bad,
                                            stream);
                       });
}

std::unique_ptr<Kernel> make_accuracy(const OpView& op, Device& device) {
  const Table table(op, device, op.input("x"));
  return scratch_kernel(op, device, static_cast<std::size_t>(table.rows) * sizeof(int),
                        [table, x = op.input_id("x"), label = op.input_id("label"),
                         hits = op.output_id("hits")](const RunContext& context, cudaStream_t stream) {
                          accuracy(at(context, x), at<int>(context, label), at(context, hits),
                                   static_cast<int*>(context.scratch), table.rows, table.classes, table.bad,
                                   stream);
                        });
}

std::unique_ptr<Kernel> make_mean(const OpView& op, Device& device) {
  return simple_kernel(op, device,
                       [x = op.input_id("x"), y = op.output_id("y"), count = elements_of(op, op.input("x"))](
                           const RunContext& context, cudaStream_t stream) {
                         mean(at(context, x), at(context, y), count, stream);
                       });
}

std::unique_ptr<Kernel> make_mean_grad(const OpView& op, Device& device) {
  return simple_kernel(
      op, device,
      [dy = op.input_id("dy"), dx = op.output_id("dx"), count = elements_of(op, op.output("dx"))](
          const RunContext& context, cudaStream_t stream) {
        fill_from(at(context, dx), at(context, dy), static_cast<float>(count), count, stream);
      });
}

std::unique_ptr<Kernel> make_weighted_mean(const OpView& op, Device& device) {
  return simple_kernel(
      op, device,
      [x = op.input_id("x"), weight = op.input_id("weight"), y = op.output_id("y"),
       count = elements_of(op, op.input("x"))](const RunContext& context, cudaStream_t stream) {
        weighted_mean(at(context, x), at(context, weight), at(context, y), count, stream);
      });
}

std::unique_ptr<Kernel> make_weighted_mean_grad(const OpView& op, Device& device) {
  return simple_kernel(
      op, device,
      [dy = op.input_id("dy"), factor = op.input_id("factor"), dx = op.output_id("dx"),
       count = elements_of(op, op.output("dx"))](const RunContext& context, cudaStream_t stream) {
        scale_from(at(context, factor), at(context, dy), static_cast<float>(count), at(context, dx), count,
                   stream);
      });
}

}  // namespace

KernelDef softmax_with_cross_entropy_kernel() { return {.make = make_loss}; }
KernelDef softmax_with_cross_entropy_grad_kernel() { return {.make = make_loss_grad}; }
KernelDef accuracy_kernel() { return {.make = make_accuracy}; }
KernelDef mean_kernel() { return {.make = make_mean}; }
KernelDef mean_grad_kernel() { return {.make = make_mean_grad}; }
KernelDef weighted_mean_kernel() { return {.make = make_weighted_mean}; }
KernelDef weighted_mean_grad_kernel() { return {.make = make_weighted_mean_grad}; }

}  // namespace fleetrun::cuda
