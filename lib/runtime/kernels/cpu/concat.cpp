// Joins and parts tensors by copying runs: what lies side by side from the axis inwards. That is so in plain
// tensors, and along the channels in whole blocks of them.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>

#include "runtime/kernels/cpu/loops/channel_blocks.h"
#include "runtime/kernels/cpu/loops/elementwise.h"

namespace fleetrun::runtime::cpu {
namespace {

// `joined` is, `rows` times, a run of x and a run of y.
struct Runs {
  std::int64_t rows, x, y;  // x, y: bytes of a run

  Runs(const OpView& op, const Value& first, const Value& second) {
    wide_or_narrow_elements(op, first);
    const auto element = static_cast<std::int64_t>(size_of(first.dtype));
    const auto axis = first.shape.begin() + op.integer("axis");
    rows = std::accumulate(first.shape.begin(), axis, std::int64_t{1}, std::multiplies<>());
    x = count_of(first.shape) / rows * element;
    y = count_of(second.shape) / rows * element;
  }
  std::int64_t per_thread() const {
    return kElementsPerThread * static_cast<std::int64_t>(sizeof(float)) / (x + y);
  }
};

std::unique_ptr<Kernel> make_concat(const OpView& op, Device&) {
  return simple_kernel([runs = Runs(op, op.input("x"), op.input("y")), x = op.input_id("x"),
                        y = op.input_id("y"), joined = op.output_id("joined")](const RunContext& context) {
    parallel_for(runs.rows, runs.per_thread(), [&](std::int64_t begin, std::int64_t end) {
      auto* to = at<std::byte>(context, joined) + begin * (runs.x + runs.y);
      for (std::int64_t row = begin; row < end; ++row) {
        to = std::copy_n(at<std::byte>(context, x) + row * runs.x, runs.x, to);
        to = std::copy_n(at<std::byte>(context, y) + row * runs.y, runs.y, to);
      }
    });
  });
}

std::unique_ptr<Kernel> make_concat_grad(const OpView& op, Device&) {
  return simple_kernel([runs = Runs(op, op.output("dx"), op.output("dy")), dx = op.output_id("dx"),
                        dy = op.output_id("dy"),
                        djoined = op.input_id("djoined")](const RunContext& context) {
    parallel_for(runs.rows, runs.per_thread(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const auto* const from = at<std::byte>(context, djoined) + row * (runs.x + runs.y);
        std::copy_n(from, runs.x, at<std::byte>(context, dx) + row * runs.x);
        std::copy_n(from + runs.x, runs.y, at<std::byte>(context, dy) + row * runs.y);
      }
    });
  });
}

constexpr std::int64_t kChannels = 1;  // the axis

// Everything in the blocks of x, if that is possible; else plain.
LayoutChoice choose_concat(const LayoutQuery& query, Device&) {
  const OpView& op = query.op;
  const Value& x = op.input("x");
  LayoutChoice choice = {{Layout(), Layout()}, {Layout()}};
  if (op.integer("axis") != kChannels || x.shape.size() != 4) return choice;
  const std::int64_t y_channels = op.input("y").shape[kChannels];
  const auto y = layout_of_channels(x, y_channels);
  const auto joined = layout_of_channels(x, x.shape[kChannels] + y_channels);
  if (y && joined) choice = {{x.layout, *y}, {*joined}};
  return choice;
}

LayoutChoice choose_concat_grad(const LayoutQuery& query, Device&) {
  const OpView& op = query.op;
  const Value& djoined = op.input("djoined");
  LayoutChoice choice = {{Layout()}, {Layout(), Layout()}};
  if (op.integer("axis") != kChannels || djoined.shape.size() != 4) return choice;
  const auto dx = layout_of_channels(djoined, op.integer("split"));
  const auto dy = layout_of_channels(djoined, djoined.shape[kChannels] - op.integer("split"));
  if (dx && dy) choice = {{djoined.layout}, {*dx, *dy}};
  return choice;
}

}  // namespace

KernelDef concat_kernel() { return {.choose_layouts = choose_concat, .make = make_concat}; }
KernelDef concat_grad_kernel() { return {.choose_layouts = choose_concat_grad, .make = make_concat_grad}; }

}  // namespace fleetrun::runtime::cpu
