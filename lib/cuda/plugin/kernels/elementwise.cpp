// The ops that look at each element by itself, and those that move elements.
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "cuda/plugin/op_tensors.h"
#include "cuda/plugin/updates.h"
#include "runtime/ops/rules/dropout.h"
#include "runtime/ops/rules/elementwise.h"

namespace fleetrun::cuda {
namespace {

using runtime::Device;

LayoutChoice like_x(const LayoutQuery& query, Device&) { return runtime::like_input(query, "x"); }
LayoutChoice like_y(const LayoutQuery& query, Device&) { return runtime::like_input(query, "y"); }

std::unique_ptr<Kernel> make_fill(const OpView& op, Device& device) {
  return simple_kernel(
      op, device,
      [y = op.output_id("y"), value = static_cast<float>(op.number("value")),
       count = elements_of(op, op.output("y"))](const RunContext& context, cudaStream_t stream) {
        fill(at(context, y), value, count, stream);
      });
}

std::unique_ptr<Kernel> make_scale(const OpView& op, Device& device) {
  return simple_kernel(
      op, device,
      [x = op.input_id("x"), y = op.output_id("y"), factor = static_cast<float>(op.number("scale")),
       bias = static_cast<float>(op.number("bias")), type = number_of(op, op.input("x")),
       count = runtime::count_of(op.input("x").shape)](const RunContext& context, cudaStream_t stream) {
        scale(type, context.data[x], context.data[y], factor, bias, count, stream);
      });
}

std::unique_ptr<Kernel> make_add(const OpView& op, Device& device) {
  return simple_kernel(op, device,
                       [x = op.input_id("x"), y = op.input_id("y"), sum = op.output_id("sum"),
                        type = number_of(op, op.input("x")), count = runtime::count_of(op.input("x").shape)](
                           const RunContext& context, cudaStream_t stream) {
                         add(type, context.data[x], context.data[y], context.data[sum], count, stream);
                       });
}

// relu is relu6 without an upper end.
float highest_of(const OpView& op) {
  if (!op.def().name.starts_with("relu6")) return std::numeric_limits<float>::infinity();
  return runtime::ops::relu6_threshold(op);
}

std::unique_ptr<Kernel> make_clamp(const OpView& op, Device& device) {
  return simple_kernel(op, device,
                       [x = op.input_id("x"), y = op.output_id("y"), highest = highest_of(op),
                        type = number_of(op, op.input("x")), count = runtime::count_of(op.input("x").shape)](
                           const RunContext& context, cudaStream_t stream) {
                         clamp(type, context.data[x], context.data[y], highest, count, stream);
                       });
}

std::unique_ptr<Kernel> make_clamp_grad(const OpView& op, Device& device) {
  return simple_kernel(
      op, device,
      [y = op.input_id("y"), dy = op.input_id("dy"), dx = op.output_id("dx"), highest = highest_of(op),
       type = number_of(op, op.input("y")),
       count = runtime::count_of(op.input("y").shape)](const RunContext& context, cudaStream_t stream) {
        clamp_grad(type, context.data[y], context.data[dy], context.data[dx], highest, count, stream);
      });
}

std::unique_ptr<Kernel> make_cast_of(const OpView& op, Device& device, std::span<const ValueId> x,
                                     std::span<const ValueId> y) {
  const runtime::Program& program = op.program();
  OpTensors<2> tensors;
  for (std::size_t i = 0; i < x.size(); ++i)
    tensors.add({x[i], y[i]}, runtime::count_of(program.value(x[i]).shape));
  return simple_kernel(
      op, device,
      [tensors = std::move(tensors), from = number_of(op, program.value(x.front())),
       to = number_of(op, program.value(y.front()))](const RunContext& context, cudaStream_t stream) mutable {
        cast(tensors.in(context), from, to, stream);
      });
}

std::unique_ptr<Kernel> make_cast(const OpView& op, Device& device) {
  return make_cast_of(op, device, op.input_ids("x"), op.output_ids("y"));
}

std::unique_ptr<Kernel> make_cast_gradient(const OpView& op, Device& device) {
  return make_cast_of(op, device, op.input_ids("grad"), op.output_ids("out"));
}

LayoutChoice choose_cast_gradient(const LayoutQuery& query, Device&) {
  return runtime::as_parameters_lie(query, layout_in);
}

LayoutChoice choose_cast(const LayoutQuery& query, Device& device) {
  return runtime::as_casts_lie(query, device, layout_in);
}

constexpr const char* kDraws = "dropout draws by the number of the step";

std::unique_ptr<Kernel> make_drop(const OpView& op, Device& device, const Value& from, ValueId x, ValueId y) {
  const double p = op.number("p");
  return simple_kernel(
      op, device,
      [x, y, key = static_cast<std::uint64_t>(op.integer("key")), below = runtime::ops::dropped_below(p),
       factor = static_cast<float>(1.0 / (1.0 - p)), type = number_of(op, from),
       count = runtime::count_of(from.shape)](const RunContext& context, cudaStream_t stream) {
        const runtime::ops::DropoutDraw draw = {context.seed, context.step, static_cast<std::uint32_t>(key),
                                                below};
        dropout(type, context.data[x], context.data[y], {draw.seed, draw.high(), below, factor}, count,
                stream);
      });
}

std::unique_ptr<Kernel> make_dropout(const OpView& op, Device& device) {
  return make_drop(op, device, op.input("x"), op.input_id("x"), op.output_id("y"));
}

std::unique_ptr<Kernel> make_dropout_grad(const OpView& op, Device& device) {
  return make_drop(op, device, op.input("dy"), op.input_id("dy"), op.output_id("dx"));
}

int bytes_of(const Value& value) { return static_cast<int>(size_of(value.dtype)); }  // of an element

// How often a run of x and a run of y lie side by side in what is joined, along an axis [N, C, H, W] of the value
// however it lies.
Runs runs_of(const OpView& op, const Value& x, const Value& y) {
  number_of(op, x);
  std::vector<std::int64_t> sizes = x.shape;
  std::int64_t axis = op.integer("axis");
  if (is_channels_last(x.layout)) {
    constexpr std::int64_t kPlaces[] = {0, 3, 1, 2};
    sizes = {x.shape[0], x.shape[2], x.shape[3], x.shape[1]};
    axis = kPlaces[axis];
  }
  const std::int64_t rows =
      std::accumulate(sizes.begin(), sizes.begin() + axis, std::int64_t{1}, std::multiplies<>());
  return {rows, runtime::count_of(x.shape) / rows, runtime::count_of(y.shape) / rows};
}

LayoutChoice images_like_djoined(const LayoutQuery& query, Device&) { return images_like(query, "djoined"); }

std::unique_ptr<Kernel> make_concat(const OpView& op, Device& device) {
  return simple_kernel(op, device,
                       [bytes = bytes_of(op.input("x")), x = op.input_id("x"), y = op.input_id("y"),
                        joined = op.output_id("joined"), runs = runs_of(op, op.input("x"), op.input("y"))](
                           const RunContext& context, cudaStream_t stream) {
                         join(bytes, context.data[x], context.data[y], context.data[joined], runs, stream);
                       });
}

std::unique_ptr<Kernel> make_concat_grad(const OpView& op, Device& device) {
  return simple_kernel(
      op, device,
      [bytes = bytes_of(op.output("dx")), dx = op.output_id("dx"), dy = op.output_id("dy"),
       djoined = op.input_id("djoined"),
       runs = runs_of(op, op.output("dx"), op.output("dy"))](const RunContext& context, cudaStream_t stream) {
        part(bytes, context.data[djoined], context.data[dx], context.data[dy], runs, stream);
      });
}

std::unique_ptr<Kernel> make_copy(const OpView& op, Device& device) {
  return simple_kernel(
      op, device,
      [x = op.input_id("x"), y = op.output_id("y"), bytes = op.input("x").bytes()](const RunContext& context,
                                                                                   cudaStream_t stream) {
        check(cudaMemcpyAsync(context.data[y], context.data[x], bytes, cudaMemcpyDeviceToDevice, stream),
              "copying a value");
      });
}

std::unique_ptr<Kernel> make_reorder(const OpView& op, Device& device) {
  const Value& x = op.input("x");
  const bool from_last = is_channels_last(x.layout);
  if (from_last == is_channels_last(op.output("y").layout)) return make_copy(op, device);
  const auto [images, channels, pixels] = pixels_of(x.shape);
  const Turn sizes = from_last ? Turn{images, pixels, channels} : Turn{images, channels, pixels};
  return simple_kernel(op, device,
                       [bytes = bytes_of(x), sizes, from = op.input_id("x"), to = op.output_id("y")](
                           const RunContext& context, cudaStream_t stream) {
                         turn(bytes, context.data[from], context.data[to], sizes, stream);
                       });
}

}  // namespace

KernelDef fill_kernel() { return {.make = make_fill}; }
KernelDef scale_kernel() { return {.choose_layouts = like_x, .make = make_scale}; }
KernelDef elementwise_add_kernel() {
  return {.choose_layouts = like_one_that_is_not_plain, .make = make_add};
}
KernelDef relu_kernel() { return {.choose_layouts = like_x, .make = make_clamp}; }
KernelDef relu_grad_kernel() { return {.choose_layouts = like_y, .make = make_clamp_grad}; }
KernelDef relu6_kernel() { return {.choose_layouts = like_x, .make = make_clamp}; }
KernelDef relu6_grad_kernel() { return {.choose_layouts = like_y, .make = make_clamp_grad}; }
KernelDef cast_gradient_kernel() {
  return {.choose_layouts = choose_cast_gradient, .make = make_cast_gradient};
}
KernelDef cast_kernel() {
  return {.choose_layouts = choose_cast, .make = make_cast, .waits_for_reader = true};
}
KernelDef dropout_kernel() { return {.make = make_dropout, .decided_each_run = kDraws}; }
KernelDef dropout_grad_kernel() { return {.make = make_dropout_grad, .decided_each_run = kDraws}; }
KernelDef concat_kernel() { return {.choose_layouts = images_like_x, .make = make_concat}; }
KernelDef concat_grad_kernel() { return {.choose_layouts = images_like_djoined, .make = make_concat_grad}; }
KernelDef reorder_kernel() { return {.make = make_reorder}; }

}  // namespace fleetrun::cuda
