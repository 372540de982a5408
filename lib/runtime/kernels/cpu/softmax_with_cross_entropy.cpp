#include <algorithm>
#include <cmath>

#include "runtime/kernels/cpu/labels.h"
#include "runtime/kernels/cpu/loops/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

// Writes softmax of one row, returns log(sum of exp(x - m)) + m.
double softmax_row(const float* x, float* softmax, std::int64_t classes) {
  const float highest = *std::max_element(x, x + classes);
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    softmax[c] = std::exp(x[c] - highest);
    sum += static_cast<double>(softmax[c]);
  }
  const auto scale = static_cast<float>(1.0 / sum);
  for (std::int64_t c = 0; c < classes; ++c) softmax[c] *= scale;
  return std::log(sum) + static_cast<double>(highest);
}

std::int64_t rows_per_thread(std::int64_t classes) { return std::max<std::int64_t>(1, 1024 / classes); }

std::unique_ptr<Kernel> make_loss(const OpView& op, Device&) {
  elements_of(op, op.input("logits"));
  return simple_kernel([logits = op.input_id("logits"), label = op.input_id("label"),
                        softmax = op.output_id("softmax"), loss = op.output_id("loss"),
                        labels = Labels(op, op.input("logits").shape)](const RunContext& context) {
    const std::int32_t* wanted = at<std::int32_t>(context, label);
    labels.check(wanted);
    parallel_for(labels.rows, rows_per_thread(labels.classes), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const float* x = at(context, logits) + row * labels.classes;
        const double log_sum = softmax_row(x, at(context, softmax) + row * labels.classes, labels.classes);
        at(context, loss)[row] =
            wanted[row] < 0 ? 0.0F : static_cast<float>(log_sum - static_cast<double>(x[wanted[row]]));
      }
    });
  });
}

void loss_grad_row(const float* softmax, std::int32_t label, float dloss, float* dlogits,
                   std::int64_t classes) {
  if (label < 0) {
    std::fill_n(dlogits, classes, 0.0F);
    return;
  }
  for (std::int64_t c = 0; c < classes; ++c) dlogits[c] = softmax[c] * dloss;
  dlogits[label] = (softmax[label] - 1.0F) * dloss;
}

std::unique_ptr<Kernel> make_loss_grad(const OpView& op, Device&) {
  elements_of(op, op.input("softmax"));
  return simple_kernel([softmax = op.input_id("softmax"), label = op.input_id("label"),
                        dloss = op.input_id("dloss"), dlogits = op.output_id("dlogits"),
                        labels = Labels(op, op.input("softmax").shape)](const RunContext& context) {
    const std::int32_t* wanted = at<std::int32_t>(context, label);
    labels.check(wanted);
    parallel_for(labels.rows, rows_per_thread(labels.classes), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t offset = row * labels.classes;
        loss_grad_row(at(context, softmax) + offset, wanted[row], at(context, dloss)[row],
                      at(context, dlogits) + offset, labels.classes);
      }
    });
  });
}

}  // namespace

KernelDef softmax_with_cross_entropy_kernel() { return {.make = make_loss}; }
KernelDef softmax_with_cross_entropy_grad_kernel() { return {.make = make_loss_grad}; }

}  // namespace fleetrun::runtime::cpu
