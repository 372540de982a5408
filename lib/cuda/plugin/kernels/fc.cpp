// Matrix products of cuBLAS. It takes columns first: our [rows, columns] is its [columns, rows].
#include "cuda/plugin/simple_kernel.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

constexpr float kOne = 1, kZero = 0;

struct Sizes {
  int rows, in, out;
};

Sizes sizes_of(const OpView& op, const Value& x, const Value& y) {
  const std::int64_t rows = x.shape[0];
  return {narrow(op, rows), narrow(op, elements_of(op, x) / rows), narrow(op, y.shape[1])};
}

class FcKernel : public Kernel {
 public:
  FcKernel(const OpView& op, Device& device, const Sizes& sizes)
      : device_(as_cuda(device)), doing_("running " + op.def().name), sizes_(sizes) {}

  void run(const RunContext& context) override {
    const std::lock_guard lock(device_.libraries());
    multiply(context, device_.cublas(), device_.stream(context.stream));
    check(cudaGetLastError(), doing_);
  }
  std::string describe() const override { return "cuBLAS"; }

 protected:
  virtual void multiply(const RunContext& context, cublasHandle_t cublas, cudaStream_t stream) = 0;

  CudaDevice& device_;
  std::string doing_;
  Sizes sizes_;
};

class Forward : public FcKernel {
 public:
  Forward(const OpView& op, Device& device)
      : FcKernel(op, device, sizes_of(op, op.input("x"), op.output("y"))),
        x_(op.input_id("x")),
        w_(op.input_id("w")),
        b_(op.input_id("b")),
        y_(op.output_id("y")) {}

 private:
  void multiply(const RunContext& context, cublasHandle_t cublas, cudaStream_t stream) override {
    const auto& [rows, in, out] = sizes_;
    check(cublasSgemm(cublas, CUBLAS_OP_T, CUBLAS_OP_N, out, rows, in, &kOne, at(context, w_), in,
                      at(context, x_), in, &kZero, at(context, y_), out),
          doing_);
    if (b_ != runtime::kNone) add_to_rows(at(context, y_), at(context, b_), rows, out, stream);
  }
  ValueId x_, w_, b_, y_;
};

class GradInput : public FcKernel {
 public:
  GradInput(const OpView& op, Device& device)
      : FcKernel(op, device, sizes_of(op, op.output("dx"), op.input("dy"))),
        dy_(op.input_id("dy")),
        w_(op.input_id("w")),
        dx_(op.output_id("dx")) {}

 private:
  void multiply(const RunContext& context, cublasHandle_t cublas, cudaStream_t) override {
    const auto& [rows, in, out] = sizes_;
    check(cublasSgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_N, in, rows, out, &kOne, at(context, w_), in,
                      at(context, dy_), out, &kZero, at(context, dx_), in),
          doing_);
  }
  ValueId dy_, w_, dx_;
};

class GradWeights : public FcKernel {
 public:
  GradWeights(const OpView& op, Device& device)
      : FcKernel(op, device, sizes_of(op, op.input("x"), op.input("dy"))),
        x_(op.input_id("x")),
        dy_(op.input_id("dy")),
        dw_(op.output_id("dw")),
        db_(op.output_id("db")) {}

 private:
  void multiply(const RunContext& context, cublasHandle_t cublas, cudaStream_t stream) override {
    const auto& [rows, in, out] = sizes_;
    check(cublasSgemm(cublas, CUBLAS_OP_N, CUBLAS_OP_T, in, out, rows, &kOne, at(context, x_), in,
                      at(context, dy_), out, &kZero, at(context, dw_), in),
          doing_);
    if (db_ != runtime::kNone) sum_of_rows(at(context, dy_), at(context, db_), rows, out, stream);
  }
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
