// Kernels that are one launch: what the files under kernels/ share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cuda/plugin/cuda_device.h"
#include "cuda/plugin/image_layout.h"
#include "runtime/kernels/layout_choice.h"

namespace fleetrun::cuda {

using runtime::Kernel;
using runtime::KernelDef;
using runtime::LayoutChoice;
using runtime::LayoutQuery;
using runtime::OpView;
using runtime::RunContext;
using runtime::Value;
using runtime::ValueId;

// A kernel made of one function of the run, `run(context, stream)`, that gives work to the op's stream.
template <typename Run>
class SimpleKernel : public Kernel {
 public:
  SimpleKernel(const OpView& op, CudaDevice& device, std::size_t scratch, Run run)
      : device_(device), doing_("starting " + op.def().name), scratch_(scratch), run_(std::move(run)) {}
  std::size_t scratch_bytes() const override { return scratch_; }
  void run(const RunContext& context) override {
    run_(context, device_.stream(context.stream));
    check(cudaGetLastError(), doing_);
  }

 private:
  CudaDevice& device_;
  std::string doing_;
  std::size_t scratch_;
  Run run_;
};

template <typename Run>
std::unique_ptr<Kernel> simple_kernel(const OpView& op, runtime::Device& device, Run run) {
  return std::make_unique<SimpleKernel<Run>>(op, as_cuda(device), 0, std::move(run));
}

// The same with so many bytes of scratch memory.
template <typename Run>
std::unique_ptr<Kernel> scratch_kernel(const OpView& op, runtime::Device& device, std::size_t bytes,
                                       Run run) {
  return std::make_unique<SimpleKernel<Run>>(op, as_cuda(device), bytes, std::move(run));
}

template <typename T = float>
T* at(const RunContext& context, ValueId id) {
  return static_cast<T*>(context.data[id]);
}

// Null where the op has no such value.
template <typename T = float>
T* at_or_null(const RunContext& context, ValueId id) {
  return id == runtime::kNone ? nullptr : at<T>(context, id);
}

// The libraries want their workspace at such addresses; scratch memory promises 64.
constexpr std::size_t kWorkspaceAlignment = 256;  // bytes

inline std::byte* align(void* scratch) {
  const auto address = reinterpret_cast<std::uintptr_t>(scratch);
  return static_cast<std::byte*>(scratch) +
         (kWorkspaceAlignment - address % kWorkspaceAlignment) % kWorkspaceAlignment;
}

// Scratch memory with room for so much after `align`.
inline std::size_t with_room_to_align(std::size_t bytes) {
  return bytes == 0 ? 0 : bytes + kWorkspaceAlignment;
}

// Elements of a value. Fails unless it is f32.
inline std::int64_t elements_of(const OpView& op, const Value& value) {
  if (value.dtype != DType::f32)
    op.fail(fmt::format("{} is {}, wanted f32 on CUDA", value.name, describe(value.dtype)));
  return runtime::count_of(value.shape);
}

// The type of a value's elements. Fails when it is none of floating-point numbers.
inline Number number_of(const OpView& op, const Value& value) {
  switch (value.dtype) {
    case DType::f32:
      return Number::f32;
    case DType::f16:
      return Number::f16;
    case DType::bf16:
      return Number::bf16;
    default:
      op.fail(fmt::format("{} is {}, wanted f32, f16 or bf16 on CUDA", value.name, describe(value.dtype)));
  }
}

// A size as the libraries take it.
inline int narrow(const OpView& op, std::int64_t size) {
  if (size > std::numeric_limits<int>::max())
    op.fail(fmt::format("a size is {}, too large for CUDA's libraries", size));
  return static_cast<int>(size);
}

}  // namespace fleetrun::cuda
