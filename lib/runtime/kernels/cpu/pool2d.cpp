// Pooling in whatever layout the image has; each block of channels is a plane of its own. Elements are f32 or bf16; sums are
// f32.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/vector_clones.h"
#include "runtime/kernels/cpu/channel_blocks.h"
#include "runtime/kernels/cpu/elementwise.h"
#include "runtime/kernels/cpu/lanes.h"
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
  bool exclusive, is_max, is_narrow;

  // Throws Error(config) unless x is f32 or bf16.
  Pooling(const OpView& op, const Value& x, const Shape& y)
      : window(ops::read_window(op, op.integers("kernel")[0], op.integers("kernel")[1])),
        in{x.shape[2], x.shape[3]},
        out{y[2], y[3]},
        blocks(channel_blocks(x).value()),
        exclusive(op.flag("exclusive")),
        is_max(op.text("kind") == "max"),
        is_narrow(x.dtype == DType::bf16) {
    wide_or_narrow_elements(op, x);
  }

  std::int64_t in_size() const { return in[0] * in[1] * blocks.inner; }  // elements of a plane of x
  std::int64_t out_size() const { return out[0] * out[1] * blocks.inner; }

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

// body(first channel, lanes) for the loads that together are `channels` side by side. Numbers of lanes that layouts have are
// constants, which makes them fast.
template <typename T, typename Body>
FLEETRUN_INLINE void each_load(std::int64_t channels, Body&& body) {
  std::int64_t c = 0;
  for (; c + kWidth<T> <= channels; c += kWidth<T>) body(c, Constant<kWidth<T>>());
  switch (channels - c) {
    case 0:
      return;
    case 1:
      return body(c, Constant<1>());
    case 8:
      return body(c, Constant<8>());
    case 16:
      return body(c, Constant<16>());
    default:
      return body(c, channels - c);
  }
}

// tap(offset in the plane) for what a window sees.
template <typename Tap>
FLEETRUN_INLINE void each_tap(const Pooling& p, Span rows, Span columns, Tap&& tap) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    for (std::int64_t column = columns.begin; column < columns.end; ++column)
      tap((row * p.in[1] + column) * p.blocks.inner);
}

// visit(offset in the plane of y, rows, columns) for the windows of a row of y.
template <typename Visit>
FLEETRUN_INLINE void each_window(const Pooling& p, std::int64_t row, Visit&& visit) {
  for (std::int64_t column = 0; column < p.out[1]; ++column)
    visit((row * p.out[1] + column) * p.blocks.inner, p.span(0, row), p.span(1, column));
}

// What a window makes of the channels of one load.
struct Max {
  template <typename T, typename OfLoad>
  FLEETRUN_INLINE static void pool(const Pooling& p, const T* x, Span rows, Span columns, OfLoad lanes,
                                   Registers<T>& best) {
    load(best, x + (rows.begin * p.in[1] + columns.begin) * p.blocks.inner, lanes);
    each_tap(
        p, rows, columns, [&](std::int64_t seen) __attribute__((always_inline)) {
          Registers<T> value;
          load(value, x + seen, lanes);
          for (int i = 0; i < kRegisters<T>; ++i) take_larger(best[i], value[i]);
        });
  }

  // The first tap that is the maximum takes the gradient: `left` is what has not been taken yet.
  template <typename T, typename Sums>
  FLEETRUN_INLINE static void give(const Pooling& p, const T* x, const T* y, const T* dy, Span rows,
                                   Span columns, std::int64_t channels, Sums&& sums) {
    each_load<T>(
        channels, [&](std::int64_t from, auto lanes) __attribute__((always_inline)) {
          Registers<T> left, top, value;
          load(left, dy + from, lanes);
          load(top, y + from, lanes);
          for (std::int64_t row = rows.begin; row < rows.end; ++row)
            for (std::int64_t column = columns.begin; column < columns.end; ++column) {
              load(value, x + (row * p.in[1] + column) * p.blocks.inner + from, lanes);
              Lanes* const sum = sums(row, column) + from / kLanes;
              for (int i = 0; i < kRegisters<T>; ++i) give_where_same(sum[i], left[i], value[i], top[i]);
            }
        });
  }
};

struct Average {
  template <typename T, typename OfLoad>
  FLEETRUN_INLINE static void pool(const Pooling& p, const T* x, Span rows, Span columns, OfLoad lanes,
                                   Registers<T>& sum) {
    for (Lanes& of : sum) of = Lanes{};
    each_tap(
        p, rows, columns, [&](std::int64_t seen) __attribute__((always_inline)) {
          Registers<T> value;
          load(value, x + seen, lanes);
          for (int i = 0; i < kRegisters<T>; ++i) sum[i] += value[i];
        });
    const float share = p.share(rows, columns);
    for (Lanes& of : sum) of *= share;
  }

  template <typename T, typename Sums>
  FLEETRUN_INLINE static void give(const Pooling& p, const T*, const T*, const T* dy, Span rows, Span columns,
                                   std::int64_t channels, Sums&& sums) {
    const float share = p.share(rows, columns);
    each_load<T>(
        channels, [&](std::int64_t from, auto lanes) __attribute__((always_inline)) {
          Registers<T> gift;
          load(gift, dy + from, lanes);
          for (Lanes& of : gift) of *= share;
          for (std::int64_t row = rows.begin; row < rows.end; ++row)
            for (std::int64_t column = columns.begin; column < columns.end; ++column) {
              Lanes* const sum = sums(row, column) + from / kLanes;
              for (int i = 0; i < kRegisters<T>; ++i) sum[i] += gift[i];
            }
        });
  }
};

template <typename Kind, typename T>
FLEETRUN_INLINE void pool(const Pooling& p, const T* x, T* y, std::int64_t channels) {
  for (std::int64_t row = 0; row < p.out[0]; ++row)
    each_window(
        p, row, [&](std::int64_t made, Span rows, Span columns) __attribute__((always_inline)) {
          each_load<T>(
              channels, [&](std::int64_t from, auto lanes) __attribute__((always_inline)) {
                Registers<T> result;
                Kind::pool(p, x + from, rows, columns, lanes, result);
                store(result, y + made + from, lanes);
              });
        });
}

// Registers of f32 for so many channels.
template <typename T>
constexpr std::int64_t registers_of(std::int64_t channels) {
  return (channels + kWidth<T> - 1) / kWidth<T> * kRegisters<T>;
}

// The gradient of x, in f32 for as many rows as a window sees: row `i` of x is row i % rows of `sums`. A row is written when
// no window to come sees it.
template <typename Kind, typename T>
FLEETRUN_INLINE void pool_grad(const Pooling& p, const T* x, const T* y, const T* dy, T* dx,
                               std::int64_t channels, Lanes* sums) {
  const std::int64_t pixel = registers_of<T>(channels), size = p.in[1] * pixel;  // of a row of sums
  const auto row_of = [&](std::int64_t row) { return sums + row % p.window.kernel[0] * size; };
  std::int64_t begun = 0, written = 0;
  const auto write_until = [&](std::int64_t end) __attribute__((always_inline)) {
    for (; written < end; ++written) {
      if (written >= begun) std::fill_n(row_of(written), size, Lanes{});
      for (std::int64_t column = 0; column < p.in[1]; ++column) {
        T* const to = dx + (written * p.in[1] + column) * p.blocks.inner;
        const Lanes* const row = row_of(written) + column * pixel;
        each_load<T>(
            channels, [&](std::int64_t from, auto lanes) __attribute__((always_inline)) {
              Registers<T> sum;
              std::memcpy(&sum, row + from / kLanes, sizeof sum);
              store(sum, to + from, lanes);
            });
      }
    }
  };
  for (std::int64_t row = 0; row < p.out[0]; ++row) {
    const Span seen = p.span(0, row);
    write_until(seen.begin);
    for (begun = std::max(begun, seen.begin); begun < seen.end; ++begun)
      std::fill_n(row_of(begun), size, Lanes{});
    each_window(
        p, row, [&](std::int64_t made, Span rows, Span columns) __attribute__((always_inline)) {
          Kind::give(p, x, y + made, dy + made, rows, columns, channels,
                     [&](std::int64_t at, std::int64_t column) { return row_of(at) + column * pixel; });
        });
  }
  write_until(p.in[0]);
}

// Some channels of a plane: where the first of each tensor lies, and sums for pool_grad.
struct Planes {
  const void* x;
  const void* y;
  const void* dy;
  void* made;
  Lanes* sums;
};

template <typename T>
FLEETRUN_INLINE void pool_elements(const Pooling& p, const Planes& of, std::int64_t channels) {
  const auto* const x = static_cast<const T*>(of.x);
  auto* const y = static_cast<T*>(of.made);
  p.is_max ? pool<Max>(p, x, y, channels) : pool<Average>(p, x, y, channels);
}

template <typename T>
FLEETRUN_INLINE void pool_grad_elements(const Pooling& p, const Planes& of, std::int64_t channels) {
  const auto *const x = static_cast<const T*>(of.x), *const y = static_cast<const T*>(of.y),
                    *const dy = static_cast<const T*>(of.dy);
  auto* const dx = static_cast<T*>(of.made);
  if (p.is_max)
    pool_grad<Max>(p, x, y, dy, dx, channels, of.sums);
  else
    pool_grad<Average>(p, x, y, dy, dx, channels, of.sums);
}

// The instruction set is chosen by these.
FLEETRUN_VECTOR_CLONES void pool_planes(const Pooling& p, const Planes& of, std::int64_t channels) {
  p.is_narrow ? pool_elements<Bf16>(p, of, channels) : pool_elements<float>(p, of, channels);
}
FLEETRUN_VECTOR_CLONES void pool_grad_planes(const Pooling& p, const Planes& of, std::int64_t channels) {
  p.is_narrow ? pool_grad_elements<Bf16>(p, of, channels) : pool_grad_elements<float>(p, of, channels);
}

constexpr std::int64_t kGroup =
    4 * kLanes;  // channels: a few cache lines, which the processor fetches in advance

// body(offset in x, offset in y, channels) on the threads of the team, for groups of channels that together are all.
template <typename Body>
void each_group(const Pooling& p, Body&& body) {
  const std::int64_t inner = p.blocks.inner, groups = (inner + kGroup - 1) / kGroup;
  parallel_for(p.blocks.outer * groups, kElementsPerThread * groups / p.in_size(),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t plane = i / groups, first = i % groups * kGroup;
                   body(plane * p.in_size() + first, plane * p.out_size() + first,
                        std::min(kGroup, inner - first));
                 }
               });
}

std::byte* element(const Pooling& p, const RunContext& context, ValueId tensor, std::int64_t offset) {
  const auto bytes = static_cast<std::int64_t>(p.is_narrow ? sizeof(Bf16) : sizeof(float));
  return static_cast<std::byte*>(context.data[tensor]) + offset * bytes;
}

std::unique_ptr<Kernel> make_pool2d(const OpView& op, Device&) {
  return simple_kernel([p = Pooling(op, op.input("x"), op.output("y").shape), x = op.input_id("x"),
                        y = op.output_id("y")](const RunContext& context) {
    each_group(p, [&](std::int64_t in, std::int64_t out, std::int64_t channels) {
      pool_planes(p, {.x = element(p, context, x, in), .made = element(p, context, y, out)}, channels);
    });
  });
}

class PoolGrad : public Kernel {
 public:
  explicit PoolGrad(const OpView& op)
      : pooling_(op, op.output("dx"), op.input("dy").shape),
        x_(op.input_id("x")),
        y_(op.input_id(pooling_.is_max ? "y" : "dy")),  // an average does not look at it
        dy_(op.input_id("dy")),
        dx_(op.output_id("dx")),
        sums_(pooling_.window.kernel[0] * pooling_.in[1] *
              registers_of<Bf16>(std::min(kGroup, pooling_.blocks.inner))),
        team_(static_cast<std::size_t>(omp_get_max_threads())) {}

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(sums_) * sizeof(Lanes) * team_;
  }

  void run(const RunContext& context) override {
    each_group(pooling_, [&](std::int64_t in, std::int64_t out, std::int64_t channels) {
      pool_grad_planes(pooling_,
                       {element(pooling_, context, x_, in), element(pooling_, context, y_, out),
                        element(pooling_, context, dy_, out), element(pooling_, context, dx_, in),
                        static_cast<Lanes*>(context.scratch) + sums_ * omp_get_thread_num()},
                       channels);
    });
  }

 private:
  Pooling pooling_;
  ValueId x_, y_, dy_, dx_;
  std::int64_t sums_;  // registers of a thread
  std::size_t team_;
};

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
KernelDef pool2d_grad_kernel() {
  return {.choose_layouts = choose_pool2d_grad, .make = make_kernel<PoolGrad>};
}

}  // namespace fleetrun::runtime::cpu
