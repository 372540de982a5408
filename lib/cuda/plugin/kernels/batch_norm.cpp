// Batch normalisation: of f32 images with channels first by cuDNN, of others by our own kernels, which are faster there.
// cuDNN's running variance would take sum (x - m)^2 / (n - 1), so the running statistics are moved by a kernel of our
// own, from the mean and the inverse deviation that it saves.
#include "cuda/plugin/kernels/own_batch_norm.h"
#include "cuda/plugin/simple_kernel.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

constexpr float kOne = 1, kZero = 0;

struct Norm {
  CudnnTensor image, channels;
  int count;  // of channels
  double epsilon;
  cudnnBatchNormMode_t mode;

  Norm(const OpView& op, CudaDevice& device)
      : count(narrow(op, op.input("x").shape[1])),
        epsilon(op.number("epsilon")),
        mode(device.options().persistent_batch_norm ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT
                                                    : CUDNN_BATCHNORM_SPATIAL) {
    const Value& x = op.input("x");
    narrow(op, elements_of(op, x));
    image = make_tensor(
        {static_cast<int>(x.shape[0]), count, static_cast<int>(x.shape[2]), static_cast<int>(x.shape[3])});
    channels = make_tensor({1, count, 1, 1});
  }
  std::size_t bytes_of_channels() const { return static_cast<std::size_t>(count) * sizeof(float); }
};

class NormKernel : public Kernel {
 public:
  NormKernel(const OpView& op, Device& device)
      : device_(as_cuda(device)), doing_("running " + op.def().name), norm_(op, device_) {}

  std::string describe() const override {
    return norm_.mode == CUDNN_BATCHNORM_SPATIAL ? "cuDNN spatial" : "cuDNN spatial persistent";
  }
  void run(const RunContext& context) override {
    const std::lock_guard lock(device_.libraries());
    normalise(context, device_.cudnn(), device_.stream(context.stream));
    check(cudaGetLastError(), doing_);
  }

 protected:
  virtual void normalise(const RunContext& context, cudnnHandle_t cudnn, cudaStream_t stream) = 0;

  CudaDevice& device_;
  std::string doing_;
  Norm norm_;
};

class ForwardKernel : public NormKernel {
 protected:
  ForwardKernel(const OpView& op, Device& device)
      : NormKernel(op, device),
        x_(op.input_id("x")),
        scale_(op.input_id("scale")),
        bias_(op.input_id("bias")),
        mean_(op.input_id("mean")),
        variance_(op.input_id("variance")),
        y_(op.output_id("y")) {}

  ValueId x_, scale_, bias_, mean_, variance_, y_;
};

class Evaluation : public ForwardKernel {
 public:
  Evaluation(const OpView& op, Device& device) : ForwardKernel(op, device) {}

 private:
  void normalise(const RunContext& context, cudnnHandle_t cudnn, cudaStream_t) override {
    check(cudnnBatchNormalizationForwardInference(
              cudnn, CUDNN_BATCHNORM_SPATIAL, &kOne, &kZero, norm_.image.get(), context.data[x_],
              norm_.image.get(), context.data[y_], norm_.channels.get(), context.data[scale_],
              context.data[bias_], context.data[mean_], context.data[variance_], norm_.epsilon),
          doing_);
  }
};

class Training : public ForwardKernel {
 public:
  Training(const OpView& op, Device& device)
      : ForwardKernel(op, device),
        batch_mean_(op.output_id("batch_mean")),
        batch_variance_(op.output_id("batch_variance")),
        keep_(static_cast<float>(op.number("momentum"))),
        take_(static_cast<float>(1.0 - op.number("momentum"))) {}

  std::size_t scratch_bytes() const override { return norm_.bytes_of_channels(); }  // the inverse deviation

 private:
  void normalise(const RunContext& context, cudnnHandle_t cudnn, cudaStream_t stream) override {
    constexpr double kNoMove = 0;  // there are no running statistics to move
    check(cudnnBatchNormalizationForwardTraining(
              cudnn, norm_.mode, &kOne, &kZero, norm_.image.get(), context.data[x_], norm_.image.get(),
              context.data[y_], norm_.channels.get(), context.data[scale_], context.data[bias_], kNoMove,
              nullptr, nullptr, norm_.epsilon, context.data[batch_mean_], context.scratch),
          doing_);
    const Statistics statistics = {.batch_mean = at(context, batch_mean_),
                                   .inverse = static_cast<const float*>(context.scratch),
                                   .batch_variance = at(context, batch_variance_),
                                   .mean = at(context, mean_),
                                   .variance = at(context, variance_)};
    move_statistics(statistics, norm_.epsilon, keep_, take_, norm_.count, stream);
  }
  ValueId batch_mean_, batch_variance_;
  float keep_, take_;
};

class Gradient : public NormKernel {
 public:
  Gradient(const OpView& op, Device& device)
      : NormKernel(op, device),
        x_(op.input_id("x")),
        dy_(op.input_id("dy")),
        scale_(op.input_id("scale")),
        mean_(op.input_id("batch_mean")),
        variance_(op.input_id("batch_variance")),
        dx_(op.output_id("dx")),
        dscale_(op.output_id("dscale")),
        dbias_(op.output_id("dbias")) {}

  std::size_t scratch_bytes() const override { return norm_.bytes_of_channels(); }  // the inverse deviation

 private:
  void normalise(const RunContext& context, cudnnHandle_t cudnn, cudaStream_t stream) override {
    auto* const inverse = static_cast<float*>(context.scratch);
    inverse_deviation(at(context, variance_), inverse, norm_.epsilon, norm_.count, stream);
    check(cudnnBatchNormalizationBackward(cudnn, norm_.mode, &kOne, &kZero, &kOne, &kZero, norm_.image.get(),
                                          context.data[x_], norm_.image.get(), context.data[dy_],
                                          norm_.image.get(), context.data[dx_], norm_.channels.get(),
                                          context.data[scale_], context.data[dscale_], context.data[dbias_],
                                          norm_.epsilon, context.data[mean_], inverse),
          doing_);
  }
  ValueId x_, dy_, scale_, mean_, variance_, dx_, dscale_, dbias_;
};

// Whether cuDNN runs the op; else our own kernels do.
bool by_cudnn(const OpView& op) {
  const Value& x = op.input("x");
  return x.dtype == DType::f32 && !is_channels_last(x.layout);
}

std::unique_ptr<Kernel> make_batch_norm(const OpView& op, Device& device) {
  if (!by_cudnn(op)) return make_own_batch_norm(op, device);
  if (op.flag("training")) return std::make_unique<Training>(op, device);
  return std::make_unique<Evaluation>(op, device);
}

std::unique_ptr<Kernel> make_batch_norm_grad(const OpView& op, Device& device) {
  if (!by_cudnn(op)) return make_own_batch_norm_grad(op, device);
  return std::make_unique<Gradient>(op, device);
}

}  // namespace

// cuDNN says nothing about outputs in the place of inputs.
KernelDef batch_norm_kernel() {
  return {.choose_layouts = images_like_x, .make = make_batch_norm, .shares_in_place = false};
}
KernelDef batch_norm_grad_kernel() {
  return {.choose_layouts = images_like_x, .make = make_batch_norm_grad, .shares_in_place = false};
}

}  // namespace fleetrun::cuda
