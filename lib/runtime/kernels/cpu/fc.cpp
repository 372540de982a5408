// Inner products of oneDNN on matrices. Images come as they are flattened, [N, C*H*W] row-major: for images
// in blocks oneDNN 2.6 has only kernels that call its gemm, which allocates in every run.
#include <dnnl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "runtime/kernels/cpu/onednn/cpu_device.h"
#include "runtime/kernels/cpu/onednn/inner_product.h"

namespace fleetrun::runtime::cpu {
namespace {

Descriptor matrix(const Value& value) {
  return row_major({value.shape[0], count_of(value.shape) / value.shape[0]}, value.dtype);
}

// With the weight (or its gradient) as it lies, unless it is still free, and as oneDNN likes it best.
std::vector<Way> ways(const Way& as_it_is, const Value& w, bool free) {
  Way favourite = as_it_is;
  favourite.w = any_layout(w.shape, w.dtype);
  if (free) return {favourite};
  return {as_it_is, favourite};
}

Layout weight_layout(const PrimitiveDesc& desc, dnnl_query_t what, const OpView& op) {
  if (desc == nullptr) op.fail("oneDNN has no inner product for these sizes");
  return layout_of(queried(desc, what), letters_of_weights(2));
}

Descriptor matrix_of_enough_rows(const Value& value) {
  const Descriptor exact = matrix(value);
  return row_major({std::max(exact.dims[0], kLeastRows), exact.dims[1]}, value.dtype);
}

Way forward_way(const OpView& op) {
  return {matrix_of_enough_rows(op.input("x")), descriptor_of(op.input("w")),
          matrix_of_enough_rows(op.output("y"))};
}

// Computes kLeastRows rows in scratch memory. Rows of zeros follow those of x, and their results are dropped.
class ProductOfFewRows : public Kernel {
 public:
  ProductOfFewRows(const OpView& op, CpuDevice& device, const PrimitiveDesc& desc,
                   std::vector<PrimitiveArgument> arguments)
      : x_bytes_(op.input("x").bytes()),
        y_bytes_(op.output("y").bytes()),
        room_of_x_(room_of(queried(desc, dnnl_query_src_md))),
        room_of_y_(room_of(queried(desc, dnnl_query_dst_md))),
        product_(op, device, desc, numbered(arguments)) {}

  void run(const RunContext& context) override {
    auto* const x = static_cast<std::byte*>(context.scratch);
    std::byte* const y = x + room_of_x_;
    for (std::size_t i = 0; i < values_.size(); ++i) pointers_[i] = context.data[values_[i]];
    std::memcpy(x, std::exchange(pointers_[kX], x), x_bytes_);
    std::memset(x + x_bytes_, 0, room_of_x_ - x_bytes_);
    void* const results = std::exchange(pointers_[kY], y);
    RunContext inner = context;
    inner.data = pointers_.data();
    inner.scratch = y + room_of_y_;
    product_.run(inner);
    std::memcpy(results, y, y_bytes_);
  }

  std::size_t scratch_bytes() const override { return room_of_x_ + room_of_y_ + product_.scratch_bytes(); }
  std::string describe() const override { return product_.describe(); }

 private:
  static constexpr std::size_t kX = 0, kY = 2;  // the places in make_fc's arguments
  static constexpr std::size_t kAlignment = 64;

  static std::size_t room_of(const Descriptor& matrix) {
    return (dnnl_memory_desc_get_size(&matrix) + kAlignment - 1) / kAlignment * kAlignment;
  }

  // The product finds its values by their place in pointers_.
  std::vector<PrimitiveArgument> numbered(std::vector<PrimitiveArgument>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      values_.push_back(std::exchange(arguments[i].value, static_cast<ValueId>(i)));
    return arguments;
  }

  std::vector<ValueId> values_;
  std::array<void*, 4> pointers_ = {};  // x, w, y and the bias
  const std::size_t x_bytes_, y_bytes_, room_of_x_, room_of_y_;
  PrimitiveKernel product_;
};

LayoutChoice choose_fc(const LayoutQuery& query, Device& device) {
  const PrimitiveDesc desc =
      best_way(ways(forward_way(query.op), query.op.input("w"), query.input_free[1]),
               [&](const Way& way) { return inner_product(way, nullptr, as_cpu(device).engine()); });
  return {{Layout(), weight_layout(desc, dnnl_query_weights_md, query.op), Layout()}, {Layout()}};
}

std::unique_ptr<Kernel> make_fc(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Way way = forward_way(op);
  std::vector<PrimitiveArgument> arguments = {{DNNL_ARG_SRC, op.input_id("x"), way.x},
                                              {DNNL_ARG_WEIGHTS, op.input_id("w"), way.w},
                                              {DNNL_ARG_DST, op.output_id("y"), way.y}};
  if (op.has_input("b")) arguments.push_back({DNNL_ARG_BIAS, op.input_id("b"), descriptor_of(op.input("b"))});
  const Descriptor* bias = op.has_input("b") ? &arguments.back().descriptor : nullptr;
  const PrimitiveDesc desc = inner_product(way, bias, cpu.engine());
  if (op.input("x").shape[0] < kLeastRows)
    return std::make_unique<ProductOfFewRows>(op, cpu, desc, arguments);
  return std::make_unique<PrimitiveKernel>(op, cpu, desc, arguments);
}

Way grad_input_way(const OpView& op) {
  return {matrix(op.output("dx")), descriptor_of(op.input("w")), matrix(op.input("dy"))};
}

LayoutChoice choose_grad_input(const LayoutQuery& query, Device& device) {
  const PrimitiveDesc desc =
      best_way(ways(grad_input_way(query.op), query.op.input("w"), query.input_free[1]),
               [&](const Way& way) { return inner_product_grad_input(way, as_cpu(device).engine()); });
  return {{Layout(), weight_layout(desc, dnnl_query_weights_md, query.op)}, {Layout()}};
}

std::unique_ptr<Kernel> make_grad_input(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Way way = grad_input_way(op);
  return std::make_unique<PrimitiveKernel>(
      op, cpu, inner_product_grad_input(way, cpu.engine()),
      std::vector<PrimitiveArgument>{{DNNL_ARG_DIFF_DST, op.input_id("dy"), way.y},
                                     {DNNL_ARG_WEIGHTS, op.input_id("w"), way.w},
                                     {DNNL_ARG_DIFF_SRC, op.output_id("dx"), way.x}});
}

Way grad_weights_way(const OpView& op) {
  return {matrix(op.input("x")), descriptor_of(op.output("dw")), matrix(op.input("dy"))};
}

LayoutChoice choose_grad_weights(const LayoutQuery& query, Device& device) {
  const PrimitiveDesc desc = best_way(
      ways(grad_weights_way(query.op), query.op.output("dw"), false),
      [&](const Way& way) { return inner_product_grad_weights(way, nullptr, as_cpu(device).engine()); });
  return {{Layout(), Layout()}, {weight_layout(desc, dnnl_query_diff_weights_md, query.op), Layout()}};
}

std::unique_ptr<Kernel> make_grad_weights(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Way way = grad_weights_way(op);
  std::vector<PrimitiveArgument> arguments = {{DNNL_ARG_SRC, op.input_id("x"), way.x},
                                              {DNNL_ARG_DIFF_WEIGHTS, op.output_id("dw"), way.w},
                                              {DNNL_ARG_DIFF_DST, op.input_id("dy"), way.y}};
  if (op.has_output("db"))
    arguments.push_back({DNNL_ARG_DIFF_BIAS, op.output_id("db"), descriptor_of(op.output("db"))});
  const Descriptor* bias = op.has_output("db") ? &arguments.back().descriptor : nullptr;
  return std::make_unique<PrimitiveKernel>(op, cpu, inner_product_grad_weights(way, bias, cpu.engine()),
                                           arguments);
}

}  // namespace

KernelDef fc_kernel() { return {.choose_layouts = choose_fc, .make = make_fc}; }
KernelDef fc_grad_input_kernel() { return {.choose_layouts = choose_grad_input, .make = make_grad_input}; }
KernelDef fc_grad_weights_kernel() {
  return {.choose_layouts = choose_grad_weights, .make = make_grad_weights};
}

}  // namespace fleetrun::runtime::cpu
