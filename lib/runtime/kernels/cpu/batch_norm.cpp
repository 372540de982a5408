// Batch normalisation of oneDNN in the layout that the image has; the running statistics are moved here.
// oneDNN says that the result may lie where the image does, and dx where dy does.
#include <dnnl.h>

#include <array>

#include "runtime/kernels/cpu/cpu_device.h"
#include "runtime/kernels/cpu/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

constexpr unsigned kScaleAndShift = dnnl_use_scale | dnnl_use_shift;

PrimitiveDesc describe_forward(const OpView& op, const Descriptor& image, dnnl_engine_t engine) {
  const bool training = op.flag("training");
  dnnl_batch_normalization_desc_t desc;
  check(dnnl_batch_normalization_forward_desc_init(
            &desc, training ? dnnl_forward_training : dnnl_forward_inference, &image,
            static_cast<float>(op.number("epsilon")),
            training ? kScaleAndShift : kScaleAndShift | dnnl_use_global_stats),
        "describing batch_norm");
  return describe_primitive(&desc, engine);
}

PrimitiveDesc describe_backward(const OpView& op, const Descriptor& image, dnnl_engine_t engine) {
  const auto epsilon = static_cast<float>(op.number("epsilon"));
  dnnl_batch_normalization_desc_t forward;
  check(dnnl_batch_normalization_forward_desc_init(&forward, dnnl_forward_training, &image, epsilon,
                                                   kScaleAndShift),
        "describing batch_norm");
  dnnl_batch_normalization_desc_t desc;
  check(dnnl_batch_normalization_backward_desc_init(&desc, dnnl_backward, &image, &image, epsilon,
                                                    kScaleAndShift),
        "describing batch_norm_grad");
  return describe_primitive(&desc, engine, describe_primitive(&forward, engine).get());
}

using Describe = PrimitiveDesc (*)(const OpView&, const Descriptor&, dnnl_engine_t);

// As x lies, or plain where oneDNN has only its reference implementation for that.
Layout image_layout(const LayoutQuery& query, Device& device, Describe describe) {
  const Value& x = query.op.input("x");
  const std::array<Descriptor, 2> ways = {row_major(x.shape, x.dtype), descriptor_of(x)};
  const dnnl_engine_t engine = as_cpu(device).engine();
  const PrimitiveDesc as_it_lies = describe(query.op, ways[1], engine);
  if (optimised(as_it_lies) || !optimised(describe(query.op, ways[0], engine))) return x.layout;
  return {};
}

LayoutChoice choose_batch_norm(const LayoutQuery& query, Device& device) {
  const Layout image = image_layout(query, device, describe_forward);
  return {{image, Layout(), Layout(), Layout(), Layout()}, {image, Layout(), Layout(), Layout(), Layout()}};
}

LayoutChoice choose_batch_norm_grad(const LayoutQuery& query, Device& device) {
  const Layout image = image_layout(query, device, describe_backward);
  return {{image, image, Layout(), Layout(), Layout()}, {image, Layout(), Layout()}};
}

// Normalises by the batch, then moves the running statistics.
class BatchNormTraining : public PrimitiveKernel {
 public:
  BatchNormTraining(const OpView& op, CpuDevice& device, const PrimitiveDesc& desc,
                    std::vector<PrimitiveArgument> arguments)
      : PrimitiveKernel(op, device, desc, std::move(arguments)),
        pairs_{{{op.input_id("mean"), op.output_id("batch_mean")},
                {op.input_id("variance"), op.output_id("batch_variance")}}},
        channels_(op.input("x").shape[1]),
        keep_(static_cast<float>(op.number("momentum"))),
        take_(static_cast<float>(1.0 - op.number("momentum"))) {}

  void run(const RunContext& context) override {
    PrimitiveKernel::run(context);
    for (const Pair& pair : pairs_) {
      float* const running = at(context, pair.running);
      const float* const batch = at(context, pair.batch);
      for (std::int64_t c = 0; c < channels_; ++c) running[c] = running[c] * keep_ + batch[c] * take_;
    }
  }

 private:
  struct Pair {
    ValueId running, batch;
  };
  std::array<Pair, 2> pairs_;
  std::int64_t channels_;
  float keep_, take_;
};

std::unique_ptr<Kernel> make_batch_norm(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Descriptor image = descriptor_of(op.input("x"));
  const Descriptor channels = descriptor_of(op.input("scale"));
  const PrimitiveDesc desc = describe_forward(op, image, cpu.engine());
  const bool training = op.flag("training");
  const ValueId mean = training ? op.output_id("batch_mean") : op.input_id("mean");
  const ValueId variance = training ? op.output_id("batch_variance") : op.input_id("variance");
  const std::vector<PrimitiveArgument> arguments = {{DNNL_ARG_SRC, op.input_id("x"), image},
                                                    {DNNL_ARG_DST, op.output_id("y"), image},
                                                    {DNNL_ARG_SCALE, op.input_id("scale"), channels},
                                                    {DNNL_ARG_SHIFT, op.input_id("bias"), channels},
                                                    {DNNL_ARG_MEAN, mean, channels},
                                                    {DNNL_ARG_VARIANCE, variance, channels}};
  if (training) return std::make_unique<BatchNormTraining>(op, cpu, desc, arguments);
  return std::make_unique<PrimitiveKernel>(op, cpu, desc, arguments);
}

// oneDNN 2.6 refuses to run without a shift, on which no gradient depends: it gets the scale.
std::unique_ptr<Kernel> make_batch_norm_grad(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Descriptor image = descriptor_of(op.input("x"));
  const Descriptor channels = descriptor_of(op.input("scale"));
  return std::make_unique<PrimitiveKernel>(
      op, cpu, describe_backward(op, image, cpu.engine()),
      std::vector<PrimitiveArgument>{{DNNL_ARG_SRC, op.input_id("x"), image},
                                     {DNNL_ARG_DIFF_DST, op.input_id("dy"), image},
                                     {DNNL_ARG_SCALE, op.input_id("scale"), channels},
                                     {DNNL_ARG_SHIFT, op.input_id("scale"), channels},
                                     {DNNL_ARG_MEAN, op.input_id("batch_mean"), channels},
                                     {DNNL_ARG_VARIANCE, op.input_id("batch_variance"), channels},
                                     {DNNL_ARG_DIFF_SRC, op.output_id("dx"), image},
                                     {DNNL_ARG_DIFF_SCALE, op.output_id("dscale"), channels},
                                     {DNNL_ARG_DIFF_SHIFT, op.output_id("dbias"), channels}});
}

}  // namespace

KernelDef batch_norm_kernel() { return {.choose_layouts = choose_batch_norm, .make = make_batch_norm}; }
KernelDef batch_norm_grad_kernel() {
  return {.choose_layouts = choose_batch_norm_grad, .make = make_batch_norm_grad};
}

}  // namespace fleetrun::runtime::cpu
