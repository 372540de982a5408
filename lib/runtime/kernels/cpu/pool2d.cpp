// Pooling in whatever layout the image has; each block of channels is a plane of its own. Elements are f32 or bf16; sums are
// f32.
#include <omp.h>

#include <algorithm>
#include <array>

#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/loops/channel_blocks.h"
#include "runtime/kernels/cpu/loops/elementwise.h"
#include "runtime/kernels/cpu/loops/lanes.h"
#include "runtime/ops/rules/window.h"

namespace fleetrun::runtime::cpu {
namespace {

struct Span {
  std::int64_t begin, end;
};

// What a window sees of an image, and where in the plane of y its result lies.
struct Seen {
  Span rows, columns;
  std::int64_t made;
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

  float share(const Seen& seen) const {
    const Span &rows = seen.rows, &columns = seen.columns;
    const std::int64_t count = exclusive ? (rows.end - rows.begin) * (columns.end - columns.begin)
                                         : window.kernel[0] * window.kernel[1];
    return 1.0F / static_cast<float>(count);
  }
};

// The channels side by side that one call looks at, cut into loads: those of whole registers, or the few that are left of them.
template <typename T>
struct WholeLoads {
  std::int64_t channels;

  // body(first channel, Constant<width>, lanes)
  template <typename Body>
  FLEETRUN_VECTOR_LOOP void each(Body&& body) const {
    constexpr Constant<kWidest<T>> kFull;
    std::int64_t done = 0;
    for (; done + kFull <= channels; done += kFull) body(std::int64_t{done}, kFull, kFull);
    each_narrower_load<T>(
        done, channels, [&](std::int64_t first, auto width) __attribute__((always_inline)) {
          body(first, width, width);
        });
  }
};
template <typename Lanes>
struct OneLoad {
  Lanes lanes;

  template <typename Body>
  FLEETRUN_VECTOR_LOOP void each(Body&& body) const {
    body(std::int64_t{0}, Constant<kFewestLanes>(), lanes);
  }
};

// tap(offset in the plane) for what a window sees.
template <typename Tap>
FLEETRUN_VECTOR_LOOP void each_tap(const Pooling& p, const Seen& seen, Tap&& tap) {
  for (std::int64_t row = seen.rows.begin; row < seen.rows.end; ++row)
    for (std::int64_t column = seen.columns.begin; column < seen.columns.end; ++column)
      tap((row * p.in[1] + column) * p.blocks.inner);
}

// Sums of as many rows of x as a window sees, `pixel` floats for each column: row `i` of x is row i % rows here.
struct RowSums {
  float* first;
  std::int64_t pixel, size;  // floats of a row

  FLEETRUN_VECTOR_LOOP float* row(const Pooling& p, std::int64_t i) const {
    return first + i % p.window.kernel[0] * size;
  }
};

// tap(offset in the plane, its sums) for what a window sees.
template <typename Tap>
FLEETRUN_VECTOR_LOOP void each_sum(const Pooling& p, const Seen& seen, const RowSums& sums, Tap&& tap) {
  for (std::int64_t row = seen.rows.begin; row < seen.rows.end; ++row) {
    float* const of_row = sums.row(p, row);
    const std::int64_t begin = row * p.in[1];
    for (std::int64_t column = seen.columns.begin; column < seen.columns.end; ++column)
      tap((begin + column) * p.blocks.inner, of_row + column * sums.pixel);
  }
}

// visit(what is seen) for the windows of a row of y.
template <typename Visit>
FLEETRUN_VECTOR_LOOP void each_window(const Pooling& p, std::int64_t row, Visit&& visit) {
  for (std::int64_t column = 0; column < p.out[1]; ++column)
    visit(Seen{p.span(0, row), p.span(1, column), (row * p.out[1] + column) * p.blocks.inner});
}

// Where the first of some channels lies in each tensor.
template <typename T>
struct Channels {
  const T *x, *y, *dy;
  T* dx;
};

// What a window makes of the channels of one load.
struct Max {
  template <typename T, int width, typename OfLoad>
  FLEETRUN_VECTOR_LOOP static void pool(const Pooling& p, const T* x, const Seen& seen, OfLoad lanes,
                                        Row<T, width>& best) {
    load(best, x + (seen.rows.begin * p.in[1] + seen.columns.begin) * p.blocks.inner, lanes);
    each_tap(
        p, seen, [&](std::int64_t offset) __attribute__((always_inline)) {
          Row<T, width> value;
          load(value, x + offset, lanes);
          repeat<Row<T, width>::kRegisters>([&](auto i) __attribute__((always_inline)) {
            take_larger(best.of[i], value.of[i]);
          });
        });
  }

  // The first tap that is the maximum takes the gradient: `left` is what has not been taken yet.
  template <typename T, typename Loads>
  FLEETRUN_VECTOR_LOOP static void give(const Pooling& p, const Channels<T>& of, const Seen& seen,
                                        const Loads& loads, const RowSums& sums) {
    loads.each([&](std::int64_t from, auto width, auto lanes) __attribute__((always_inline)) {
      Row<T, width> left, top;
      load(left, of.dy + seen.made + from, lanes);
      load(top, of.y + seen.made + from, lanes);
      each_sum(
          p, seen, sums, [&](std::int64_t offset, float* at) __attribute__((always_inline)) {
            Row<T, width> value, sum;
            load(value, of.x + offset + from, lanes);
            fetch(sum, at + from);
            repeat<Row<T, width>::kRegisters>([&](auto i) __attribute__((always_inline)) {
              give_where_same(sum.of[i], left.of[i], value.of[i], top.of[i]);
            });
            keep(sum, at + from);
          });
    });
  }
};

struct Average {
  template <typename T, int width, typename OfLoad>
  FLEETRUN_VECTOR_LOOP static void pool(const Pooling& p, const T* x, const Seen& seen, OfLoad lanes,
                                        Row<T, width>& sum) {
    sum = {};
    each_tap(
        p, seen, [&](std::int64_t offset) __attribute__((always_inline)) {
          Row<T, width> value;
          load(value, x + offset, lanes);
          repeat<Row<T, width>::kRegisters>([&](auto i)
                                                __attribute__((always_inline)) { sum.of[i] += value.of[i]; });
        });
    const float share = p.share(seen);
    for (auto& of : sum.of) of *= share;
  }

  template <typename T, typename Loads>
  FLEETRUN_VECTOR_LOOP static void give(const Pooling& p, const Channels<T>& of, const Seen& seen,
                                        const Loads& loads, const RowSums& sums) {
    const float share = p.share(seen);
    loads.each([&](std::int64_t from, auto width, auto lanes) __attribute__((always_inline)) {
      Row<T, width> gift;
      load(gift, of.dy + seen.made + from, lanes);
      for (auto& each : gift.of) each *= share;
      each_sum(
          p, seen, sums, [&](std::int64_t, float* at) __attribute__((always_inline)) {
            Row<T, width> sum;
            fetch(sum, at + from);
            repeat<Row<T, width>::kRegisters>([&](auto i) __attribute__((always_inline)) {
              sum.of[i] += gift.of[i];
            });
            keep(sum, at + from);
          });
    });
  }
};

template <typename Kind, typename T, typename Loads>
FLEETRUN_VECTOR_LOOP void pool(const Pooling& p, const T* x, T* y, const Loads& loads) {
  for (std::int64_t row = 0; row < p.out[0]; ++row)
    each_window(
        p, row, [&](const Seen& seen) __attribute__((always_inline)) {
          loads.each([&](std::int64_t from, auto width, auto lanes) __attribute__((always_inline)) {
            Row<T, width> result;
            Kind::pool(p, x + from, seen, lanes, result);
            store(result, y + seen.made + from, lanes);
          });
        });
}

// Floats of sums for so many channels.
constexpr std::int64_t floats_of(std::int64_t channels) {
  return (channels + kFewestLanes - 1) / kFewestLanes * kFewestLanes;
}

// The gradient of x, in f32 for as many rows as a window sees. A row is written when no window to come sees it.
template <typename Kind, typename T, typename Loads>
FLEETRUN_VECTOR_LOOP void pool_grad(const Pooling& p, const Channels<T>& of, const Loads& loads,
                                    const RowSums& sums) {
  std::int64_t begun = 0, written = 0;
  const auto write_until = [&](std::int64_t end) __attribute__((always_inline)) {
    for (; written < end; ++written) {
      const float* const row = sums.row(p, written);
      if (written >= begun) std::fill_n(sums.row(p, written), sums.size, 0.0F);
      for (std::int64_t column = 0; column < p.in[1]; ++column) {
        T* const to = of.dx + (written * p.in[1] + column) * p.blocks.inner;
        loads.each([&](std::int64_t from, auto width, auto lanes) __attribute__((always_inline)) {
          Row<T, width> sum;
          fetch(sum, row + column * sums.pixel + from);
          store(sum, to + from, lanes);
        });
      }
    }
  };
  for (std::int64_t row = 0; row < p.out[0]; ++row) {
    const Span seen_rows = p.span(0, row);
    write_until(seen_rows.begin);
    for (begun = std::max(begun, seen_rows.begin); begun < seen_rows.end; ++begun)
      std::fill_n(sums.row(p, begun), sums.size, 0.0F);
    each_window(
        p,
        row, [&](const Seen& seen) __attribute__((always_inline)) { Kind::give(p, of, seen, loads, sums); });
  }
  write_until(p.in[0]);
}

// Some channels of a plane: where the first of each tensor lies, and sums for pool_grad.
struct Planes {
  const void* x;
  const void* y;
  const void* dy;
  void* made;
  float* sums;
};

// body(first channel, loads) for the channels of all whole registers, and for those that are left. A plain image has one.
template <typename T, typename Body>
FLEETRUN_VECTOR_LOOP void each_part(std::int64_t channels, Body&& body) {
  if (channels == 1) return body(std::int64_t{0}, OneLoad<Constant<1>>());
  const std::int64_t whole = channels / kFewestLanes * kFewestLanes;
  if (whole > 0) body(std::int64_t{0}, WholeLoads<T>{whole});
  if (whole == channels) return;
  meet_remainder();
  body(whole, OneLoad<std::int64_t>{channels - whole});
}

template <typename Kind, typename T>
FLEETRUN_VECTOR_LOOP void pool_planes(const Pooling& shared, const Planes& of, std::int64_t channels) {
  const Pooling p = shared;  // which no store can change, as far as the compiler knows
  each_part<T>(
      channels, [&](std::int64_t first, const auto& loads) __attribute__((always_inline)) {
        pool<Kind>(p, static_cast<const T*>(of.x) + first, static_cast<T*>(of.made) + first, loads);
      });
}

template <typename Kind, typename T>
FLEETRUN_VECTOR_LOOP void pool_grad_planes(const Pooling& shared, const Planes& of, std::int64_t channels) {
  const Pooling p = shared;  // as above
  const std::int64_t pixel = floats_of(channels);
  each_part<T>(
      channels, [&](std::int64_t first, const auto& loads) __attribute__((always_inline)) {
        pool_grad<Kind>(p,
                        Channels<T>{static_cast<const T*>(of.x) + first, static_cast<const T*>(of.y) + first,
                                    static_cast<const T*>(of.dy) + first, static_cast<T*>(of.made) + first},
                        loads, RowSums{of.sums, pixel, p.in[1] * pixel});
      });
}

using PlanesLoop = void (*)(const Pooling& p, const Planes& of, std::int64_t channels);

template <typename Kind>
PlanesLoop pool_loop(const Pooling& p) {
  return p.is_narrow ? vector_clones<pool_planes<Kind, Bf16>> : vector_clones<pool_planes<Kind, float>>;
}
template <typename Kind>
PlanesLoop pool_grad_loop(const Pooling& p) {
  return p.is_narrow ? vector_clones<pool_grad_planes<Kind, Bf16>>
                     : vector_clones<pool_grad_planes<Kind, float>>;
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
    const PlanesLoop loop = p.is_max ? pool_loop<Max>(p) : pool_loop<Average>(p);
    each_group(p, [&](std::int64_t in, std::int64_t out, std::int64_t channels) {
      loop(p, {.x = element(p, context, x, in), .made = element(p, context, y, out)}, channels);
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
              floats_of(std::min(kGroup, pooling_.blocks.inner))),
        team_(static_cast<std::size_t>(omp_get_max_threads())) {}

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(sums_) * sizeof(float) * team_;
  }

  void run(const RunContext& context) override {
    const PlanesLoop loop =
        pooling_.is_max ? pool_grad_loop<Max>(pooling_) : pool_grad_loop<Average>(pooling_);
    each_group(pooling_, [&](std::int64_t in, std::int64_t out, std::int64_t channels) {
      loop(pooling_,
           {element(pooling_, context, x_, in), element(pooling_, context, y_, out),
            element(pooling_, context, dy_, out), element(pooling_, context, dx_, in),
            static_cast<float*>(context.scratch) + sums_ * omp_get_thread_num()},
           channels);
    });
  }

 private:
  Pooling pooling_;
  ValueId x_, y_, dy_, dx_;
  std::int64_t sums_;  // floats of a thread
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
