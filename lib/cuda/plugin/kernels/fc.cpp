// Fully connected layers as products of matrices. Images come plain, as they are flattened.
#include "cuda/plugin/matrix_product.h"
#include "cuda/plugin/simple_kernel.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

// x as [rows, in] or its like.
Factor matrix(const OpView& op, const Value& value, bool transposed = false) {
  const std::int64_t rows = value.shape[0];
  return {rows, narrow(op, runtime::count_of(value.shape)) / rows, transposed};
}

class FcKernel : public Kernel {
 public:
  FcKernel(const OpView& op, Device& device, const Factor& left, const Factor& right, bool with_bias = false)
      : device_(as_cuda(device)),
        doing_("running " + op.def().name),
        type_(number_of(op, op.program().value(op.op().inputs.front()))),
        product_(device_, type_, left, right, with_bias) {}

  void run(const RunContext& context) override {
    const std::lock_guard lock(device_.libraries());
    multiply(context, align(context.scratch), device_.stream(context.stream));
    check(cudaGetLastError(), doing_);
  }
  std::size_t scratch_bytes() const override { return with_room_to_align(product_.workspace_bytes()); }
  std::string describe() const override {
    return fmt::format("cuBLASLt, {} bytes of workspace", product_.workspace_bytes());
  }

 protected:
  virtual void multiply(const RunContext& context, void* workspace, cudaStream_t stream) = 0;

  CudaDevice& device_;
  std::string doing_;
  Number type_;
  MatrixProduct product_;
};

class Forward : public FcKernel {
 public:
  Forward(const OpView& op, Device& device)
      : FcKernel(op, device, matrix(op, op.input("x")), matrix(op, op.input("w"), true), op.has_input("b")),
        x_(op.input_id("x")),
        w_(op.input_id("w")),
        b_(op.input_id("b")),
        y_(op.output_id("y")) {}

 private:
  void multiply(const RunContext& context, void* workspace, cudaStream_t stream) override {
    product_.run({context.data[x_], context.data[w_], at_or_null<void>(context, b_), context.data[y_]},
                 workspace, stream);
  }
  ValueId x_, w_, b_, y_;
};

class GradInput : public FcKernel {
 public:
  GradInput(const OpView& op, Device& device)
      : FcKernel(op, device, matrix(op, op.input("dy")), matrix(op, op.input("w"))),
        dy_(op.input_id("dy")),
        w_(op.input_id("w")),
        dx_(op.output_id("dx")) {}

 private:
  void multiply(const RunContext& context, void* workspace, cudaStream_t stream) override {
    product_.run({context.data[dy_], context.data[w_], nullptr, context.data[dx_]}, workspace, stream);
  }
  ValueId dy_, w_, dx_;
};

class GradWeights : public FcKernel {
 public:
  GradWeights(const OpView& op, Device& device)
      : FcKernel(op, device, matrix(op, op.input("dy"), true), matrix(op, op.input("x"))),
        made_{op.input("dy").shape[0], op.input("dy").shape[1], 1},
        x_(op.input_id("x")),
        dy_(op.input_id("dy")),
        dw_(op.output_id("dw")),
        db_(op.output_id("db")) {}

 private:
  void multiply(const RunContext& context, void* workspace, cudaStream_t stream) override {
    product_.run({context.data[dy_], context.data[x_], nullptr, context.data[dw_]}, workspace, stream);
    if (db_ != runtime::kNone) sum_of_channels(type_, context.data[dy_], context.data[db_], made_, stream);
  }
  Channels made_;
  ValueId x_, dy_, dw_, db_;
};

template <typename T>
std::unique_ptr<Kernel> make(const OpView& op, Device& device) {
  return std::make_unique<T>(op, device);
}

}  // namespace

KernelDef fc_kernel() { return {.make = make<Forward>}; }
KernelDef fc_grad_input_kernel() { return {.make = make<GradInput>}; }
KernelDef fc_grad_weights_kernel() { return {.make = make<GradWeights>}; }

}  // namespace fleetrun::cuda
