#include "cuda/plugin/kernels/own_batch_norm.h"

#include "cuda/plugin/batch_norm.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

NormSizes sizes_of(const OpView& op) {
  const Value& x = op.input("x");
  narrow(op, runtime::count_of(x.shape));
  return {.images = channels_of(x), .type = number_of(op, x), .epsilon = op.number("epsilon")};
}

// The values of each channel that an op reads; which of them there are depends on the op.
struct ChannelIds {
  ValueId scale, bias, mean, variance;

  NormChannels in(const RunContext& context) const {
    return {.scale = at(context, scale),
            .bias = bias == runtime::kNone ? nullptr : at(context, bias),
            .mean = at(context, mean),
            .variance = at(context, variance)};
  }
};

class OwnNorm : public Kernel {
 public:
  std::string describe() const override { return "fleetrun"; }
  void run(const RunContext& context) override {
    work(context, device_.stream(context.stream));
    check(cudaGetLastError(), doing_);
  }

 protected:
  OwnNorm(const OpView& op, Device& device)
      : device_(as_cuda(device)), doing_("starting " + op.def().name), sizes_(sizes_of(op)) {}
  virtual void work(const RunContext& context, cudaStream_t stream) = 0;

  CudaDevice& device_;
  std::string doing_;
  NormSizes sizes_;
};

// batch_norm, batch_norm_act and batch_norm_add_act.
class Forward : public OwnNorm {
 public:
  Forward(const OpView& op, Device& device)
      : OwnNorm(op, device),
        x_(op.input_id("x")),
        z_(op.def().name == "batch_norm_add_act" ? op.input_id("z") : runtime::kNone),
        y_(op.output_id("y")),
        training_(op.flag("training")),
        rectified_(op.def().name != "batch_norm"),
        running_{op.input_id("scale"), op.input_id("bias"), op.input_id("mean"), op.input_id("variance")},
        of_batch_(running_),
        keep_(static_cast<float>(op.number("momentum"))),
        take_(static_cast<float>(1.0 - op.number("momentum"))) {
    if (!training_) return;
    of_batch_.mean = op.output_id("batch_mean");
    of_batch_.variance = op.output_id("batch_variance");
  }
  std::size_t scratch_bytes() const override { return training_ ? batch_norm_scratch_bytes(sizes_) : 0; }

 private:
  void work(const RunContext& context, cudaStream_t stream) override {
    if (training_) {
      const NormStatistics statistics = {.batch_mean = at(context, of_batch_.mean),
                                         .batch_variance = at(context, of_batch_.variance),
                                         .mean = at(context, running_.mean),
                                         .variance = at(context, running_.variance),
                                         .keep = keep_,
                                         .take = take_};
      norm_statistics(sizes_, context.data[x_], statistics, context.scratch, stream);
    }
    normalise(sizes_, context.data[x_], z_ == runtime::kNone ? nullptr : context.data[z_], context.data[y_],
              rectified_, of_batch_.in(context), stream);
  }
  ValueId x_, z_, y_;
  bool training_, rectified_;
  ChannelIds running_, of_batch_;
  float keep_, take_;
};

// Of the same three.
class Gradient : public OwnNorm {
 public:
  Gradient(const OpView& op, Device& device)
      : OwnNorm(op, device),
        adds_(op.def().name == "batch_norm_add_act_grad"),
        rectified_(op.def().name == "batch_norm_act_grad"),
        x_(op.input_id("x")),
        dy_(op.input_id("dy")),
        y_(adds_ ? op.input_id("y") : runtime::kNone),
        dy_too_(adds_ && op.has_input("dy_too") ? op.input_id("dy_too") : runtime::kNone),
        dz_(adds_ ? op.output_id("dz") : runtime::kNone),
        dx_(op.output_id("dx")),
        dscale_(op.output_id("dscale")),
        dbias_(op.output_id("dbias")),
        channels_{op.input_id("scale"), rectified_ ? op.input_id("bias") : runtime::kNone,
                  op.input_id("batch_mean"), op.input_id("batch_variance")} {}
  std::size_t scratch_bytes() const override { return batch_norm_scratch_bytes(sizes_); }

 private:
  static void* given(const RunContext& context, ValueId id) {
    return id == runtime::kNone ? nullptr : context.data[id];
  }
  void work(const RunContext& context, cudaStream_t stream) override {
    const NormGradient gradient = {.x = context.data[x_],
                                   .dy = context.data[dy_],
                                   .dy_too = given(context, dy_too_),
                                   .y = given(context, y_),
                                   .rectified = rectified_,
                                   .dz = given(context, dz_),
                                   .dx = context.data[dx_],
                                   .dscale = at(context, dscale_),
                                   .dbias = at(context, dbias_)};
    norm_gradient(sizes_, gradient, channels_.in(context), context.scratch, stream);
  }
  bool adds_, rectified_;
  ValueId x_, dy_, y_, dy_too_, dz_, dx_, dscale_, dbias_;
  ChannelIds channels_;
};

LayoutChoice images_like_x(const LayoutQuery& query, Device&) { return images_like(query, "x"); }

}  // namespace

std::unique_ptr<Kernel> make_own_batch_norm(const OpView& op, Device& device) {
  return std::make_unique<Forward>(op, device);
}
std::unique_ptr<Kernel> make_own_batch_norm_grad(const OpView& op, Device& device) {
  return std::make_unique<Gradient>(op, device);
}

KernelDef batch_norm_act_kernel() { return {.choose_layouts = images_like_x, .make = make_own_batch_norm}; }
KernelDef batch_norm_act_grad_kernel() {
  return {.choose_layouts = images_like_x, .make = make_own_batch_norm_grad};
}
KernelDef batch_norm_add_act_kernel() {
  return {.choose_layouts = images_like_x, .make = make_own_batch_norm};
}
KernelDef batch_norm_add_act_grad_kernel() {
  return {.choose_layouts = images_like_x, .make = make_own_batch_norm_grad};
}

}  // namespace fleetrun::cuda
