// Pooling in whatever layout the image has; each block of channels is a plane of its own.
#include <omp.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/vector_clones.h"
#include "runtime/kernels/cpu/channel_blocks.h"
#include "runtime/kernels/cpu/elementwise.h"
#include "runtime/ops/window.h"

namespace fleetrun::runtime::cpu {
namespace {

struct Span {
  std::int64_t begin, end;
};

struct Pooling {
  ops::Window window;
  std::array<std::int64_t, 2> in, out;  // rows, columns
  ChannelBlocks blocks;
  bool exclusive;

  Pooling(const OpView& op, const Value& x, const Shape& y)
      : window(ops::read_window(op, op.integers("kernel")[0], op.integers("kernel")[1])),
        in{x.shape[2], x.shape[3]},
        out{y[2], y[3]},
        blocks(channel_blocks(x).value()),
        exclusive(op.flag("exclusive")) {}

  std::int64_t in_size() const { return in[0] * in[1] * blocks.inner; }  // elements of a plane of x
  std::int64_t out_size() const { return out[0] * out[1] * blocks.inner; }
  std::int64_t planes_per_thread() const { return kElementsPerThread / in_size(); }

  // The elements of x that window `index` sees along an axis.
  Span span(std::size_t axis, std::int64_t index) const {
    const std::int64_t first = index * window.strides[axis] - window.before[axis];
    return {std::max<std::int64_t>(first, 0), std::min(first + window.kernel[axis], in[axis])};
  }

  float share(Span rows, Span columns) const {
    const std::int64_t count = exclusive ? (rows.end - rows.begin) * (columns.end - columns.begin)
                                         : window.kernel[0] * window.kernel[1];
    return 1.0F / static_cast<float>(count);
  }
};

// Calls visit(offset in the x plane, offset in the y plane, rows, columns) for each window of a plane,
// and inside it tap(offset in the x plane) is up to the visitor.
template <typename Visit>
inline __attribute__((always_inline)) void each_window(const Pooling& p, Visit&& visit) {
  std::int64_t made = 0;
  for (std::int64_t row = 0; row < p.out[0]; ++row)
    for (std::int64_t column = 0; column < p.out[1]; ++column, made += p.blocks.inner)
      visit(made, p.span(0, row), p.span(1, column));
}

template <typename Tap>
inline __attribute__((always_inline)) void each_tap(const Pooling& p, Span rows, Span columns, Tap&& tap) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    for (std::int64_t column = columns.begin; column < columns.end; ++column)
      tap((row * p.in[1] + column) * p.blocks.inner);
}

FLEETRUN_VECTOR_CLONES void max_plane(const Pooling& p, const float* __restrict x, float* __restrict y) {
  each_window(p, [&](std::int64_t made, Span rows, Span columns) {
    const float* first = x + (rows.begin * p.in[1] + columns.begin) * p.blocks.inner;
    std::copy_n(first, p.blocks.inner, y + made);
    each_tap(p, rows, columns, [&](std::int64_t seen) {
      for (std::int64_t c = 0; c < p.blocks.inner; ++c) {
        const float value = x[seen + c];
        y[made + c] = value > y[made + c] || value != value ? value : y[made + c];  // NaN stays
      }
    });
  });
}

FLEETRUN_VECTOR_CLONES void average_plane(const Pooling& p, const float* __restrict x, float* __restrict y) {
  each_window(p, [&](std::int64_t made, Span rows, Span columns) {
    std::fill_n(y + made, p.blocks.inner, 0.0F);
    each_tap(p, rows, columns, [&](std::int64_t seen) {
      for (std::int64_t c = 0; c < p.blocks.inner; ++c) y[made + c] += x[seen + c];
    });
    const float share = p.share(rows, columns);
    for (std::int64_t c = 0; c < p.blocks.inner; ++c) y[made + c] *= share;
  });
}

constexpr std::int64_t kLanes = 16;  // channels whose gradients are kept in registers

// The first tap that is the maximum takes the gradient: `left` is what has not been taken yet.
FLEETRUN_VECTOR_CLONES void max_grad_plane(const Pooling& p, const float* __restrict x,
                                           const float* __restrict y, const float* __restrict dy,
                                           float* __restrict dx) {
  std::fill_n(dx, p.in_size(), 0.0F);
  for (std::int64_t from = 0; from < p.blocks.inner; from += kLanes) {
    const std::int64_t lanes = std::min(kLanes, p.blocks.inner - from);
    each_window(p, [&](std::int64_t made, Span rows, Span columns) {
      std::array<float, kLanes> left{};
      std::copy_n(dy + made + from, lanes, left.begin());
      each_tap(p, rows, columns, [&](std::int64_t seen) {
        for (std::int64_t c = 0; c < lanes; ++c) {
          const bool taken = x[seen + from + c] == y[made + from + c];
          float& mine = left[static_cast<std::size_t>(c)];
          dx[seen + from + c] += taken ? mine : 0.0F;
          mine = taken ? 0.0F : mine;
        }
      });
    });
  }
}

FLEETRUN_VECTOR_CLONES void average_grad_plane(const Pooling& p, const float* __restrict dy,
                                               float* __restrict dx) {
  std::fill_n(dx, p.in_size(), 0.0F);
  each_window(p, [&](std::int64_t made, Span rows, Span columns) {
    const float share = p.share(rows, columns);
    each_tap(p, rows, columns, [&](std::int64_t seen) {
      for (std::int64_t c = 0; c < p.blocks.inner; ++c) dx[seen + c] += dy[made + c] * share;
    });
  });
}

// Calls plane(offset of its x, offset of its y) for all planes.
template <typename Plane>
void each_plane(const Pooling& p, Plane&& plane) {
  parallel_for(p.blocks.outer, p.planes_per_thread(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) plane(i * p.in_size(), i * p.out_size());
  });
}

// A tensor that a pooling of bf16 reads or writes, as large as x or as y.
struct PooledTensor {
  ValueId id;
  bool like_x, written;
};

// bf16: some channels of a plane at a time are f32 in memory of the thread, where sums do not lose what is small.
class NarrowPooling : public Kernel {
 public:
  // Tensors and their planes in the same order.
  using Plane = void (*)(const Pooling&, float* const* planes);

  NarrowPooling(const Pooling& pooling, std::vector<PooledTensor> tensors, Plane plane)
      : pooling_(pooling), tensors_(std::move(tensors)), plane_(plane) {
    for (const PooledTensor& tensor : tensors_)
      bytes_ += static_cast<std::size_t>(pixels(tensor) * kLanes) * sizeof(float);
    team_ = static_cast<std::size_t>(omp_get_max_threads());
  }

  std::size_t scratch_bytes() const override { return bytes_ * team_; }

  void run(const RunContext& context) override {
    const std::int64_t inner = pooling_.blocks.inner, groups = (inner + kLanes - 1) / kLanes;
    const std::int64_t elements = pooling_.in_size() / groups;
    parallel_for(pooling_.blocks.outer * groups, kElementsPerThread / elements,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) pool(context, i / groups, i % groups * kLanes);
                 });
  }

 private:
  std::int64_t pixels(const PooledTensor& tensor) const {
    return (tensor.like_x ? pooling_.in_size() : pooling_.out_size()) / pooling_.blocks.inner;
  }

  void pool(const RunContext& context, std::int64_t plane, std::int64_t channel) const {
    const std::int64_t inner = pooling_.blocks.inner;
    const int lanes = static_cast<int>(std::min(kLanes, inner - channel));
    auto* memory = static_cast<float*>(context.scratch) +
                   bytes_ / sizeof(float) * static_cast<std::size_t>(omp_get_thread_num());
    std::array<float*, 4> planes{};
    const auto each = [&](bool written, auto&& convert) {
      for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const std::int64_t size = pixels(tensors_[i]);
        if (tensors_[i].written == written)
          convert(at<Bf16>(context, tensors_[i].id) + plane * size * inner + channel, planes[i],
                  NarrowRows{size, inner, lanes, lanes});
      }
    };
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      planes[i] = memory;
      memory += pixels(tensors_[i]) * kLanes;
    }
    each(false, [](const Bf16* from, float* to, const NarrowRows& rows) {
      if (rows.stride == rows.lanes) return widen(from, to, rows.count * rows.stride);
      widen_rows(from, to, rows);
    });
    Pooling of_lanes = pooling_;
    of_lanes.blocks.inner = lanes;
    plane_(of_lanes, planes.data());
    each(true, [](Bf16* to, const float* from, const NarrowRows& rows) {
      if (rows.stride == rows.lanes) return narrow(from, to, rows.count * rows.stride);
      narrow_rows(from, to, rows);
    });
  }

  Pooling pooling_;
  std::vector<PooledTensor> tensors_;
  Plane plane_;
  std::size_t bytes_ = 0, team_ = 1;  // bytes of a thread
};

std::unique_ptr<Kernel> make_narrow_pool2d(const OpView& op, const Pooling& p) {
  const bool max = op.text("kind") == "max";
  return std::make_unique<NarrowPooling>(
      p, std::vector<PooledTensor>{{op.input_id("x"), true, false}, {op.output_id("y"), false, true}},
      max ? [](const Pooling& of, float* const* planes) { max_plane(of, planes[0], planes[1]); }
          : [](const Pooling& of, float* const* planes) { average_plane(of, planes[0], planes[1]); });
}

std::unique_ptr<Kernel> make_narrow_pool2d_grad(const OpView& op, const Pooling& p) {
  const PooledTensor dy = {op.input_id("dy"), false, false}, dx = {op.output_id("dx"), true, true};
  if (op.text("kind") != "max")
    return std::make_unique<NarrowPooling>(
        p, std::vector{dy, dx},
        [](const Pooling& of, float* const* planes) { average_grad_plane(of, planes[0], planes[1]); });
  return std::make_unique<NarrowPooling>(
      p, std::vector<PooledTensor>{{op.input_id("x"), true, false}, {op.input_id("y"), false, false}, dy, dx},
      [](const Pooling& of, float* const* planes) {
        max_grad_plane(of, planes[0], planes[1], planes[2], planes[3]);
      });
}

std::unique_ptr<Kernel> make_pool2d(const OpView& op, Device&) {
  const Value& image = op.input("x");
  wide_or_narrow_elements(op, image);
  const Pooling pooling(op, image, op.output("y").shape);
  if (image.dtype == DType::bf16) return make_narrow_pool2d(op, pooling);
  const auto plane = op.text("kind") == "max" ? max_plane : average_plane;
  return simple_kernel([plane, p = pooling, x = op.input_id("x"),
                        y = op.output_id("y")](const RunContext& context) {
    each_plane(
        p, [&](std::int64_t in, std::int64_t out) { plane(p, at(context, x) + in, at(context, y) + out); });
  });
}

std::unique_ptr<Kernel> make_pool2d_grad(const OpView& op, Device&) {
  const Value& image = op.output("dx");
  wide_or_narrow_elements(op, image);
  const Pooling p(op, image, op.input("dy").shape);
  if (image.dtype == DType::bf16) return make_narrow_pool2d_grad(op, p);
  const ValueId dy = op.input_id("dy"), dx = op.output_id("dx");
  if (op.text("kind") != "max")
    return simple_kernel([p, dy, dx](const RunContext& context) {
      each_plane(p, [&](std::int64_t in, std::int64_t out) {
        average_grad_plane(p, at(context, dy) + out, at(context, dx) + in);
      });
    });
  return simple_kernel([p, dy, dx, x = op.input_id("x"), y = op.input_id("y")](const RunContext& context) {
    each_plane(p, [&](std::int64_t in, std::int64_t out) {
      max_grad_plane(p, at(context, x) + in, at(context, y) + out, at(context, dy) + out,
                     at(context, dx) + in);
    });
  });
}

// As the image lies, if that is a layout of channel blocks; else everything plain.
LayoutChoice choose_pool2d(const LayoutQuery& query, Device&) {
  const Value& x = query.op.input("x");
  if (!channel_blocks(x)) return {{Layout()}, {Layout()}};
  return {{x.layout}, {resized_layout(x, query.op.output("y").shape)}};
}

LayoutChoice choose_pool2d_grad(const LayoutQuery& query, Device&) {
  const Value& x = query.op.input("x");
  if (!channel_blocks(x)) return {{Layout(), Layout(), Layout()}, {Layout()}};
  const Layout out = resized_layout(x, query.op.input("dy").shape);
  return {{x.layout, out, out}, {x.layout}};
}

}  // namespace

KernelDef pool2d_kernel() { return {.choose_layouts = choose_pool2d, .make = make_pool2d}; }
KernelDef pool2d_grad_kernel() { return {.choose_layouts = choose_pool2d_grad, .make = make_pool2d_grad}; }

}  // namespace fleetrun::runtime::cpu
