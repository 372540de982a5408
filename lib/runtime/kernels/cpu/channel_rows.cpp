#include "runtime/kernels/cpu/channel_rows.h"

#include <algorithm>
#include <cstring>

#include "base/vector_clones.h"
#include "runtime/kernels/cpu/narrow.h"

namespace fleetrun::runtime::cpu {
namespace {

// A row in a register, or in as many as the processor needs. Never passed to a function that is not inlined.
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

// Rows summed in f32: 4 KiB, which the second look at them finds in the first cache.
constexpr std::int64_t kPiece = 64;
constexpr int kChains = 4;  // sums that grow side by side, as an addition takes 4 cycles

#define FLEETRUN_INLINE __attribute__((always_inline)) inline

FLEETRUN_INLINE void load(Lanes& row, const float* from, int lanes) {
  if (lanes == kLanes) {
    std::memcpy(&row, from, sizeof row);
  } else {
    row = Lanes{};
    std::memcpy(&row, from, static_cast<std::size_t>(lanes) * sizeof(float));
  }
}

FLEETRUN_INLINE void store(const Lanes& row, float* to, int lanes) {
  std::memcpy(to, &row, static_cast<std::size_t>(lanes) * sizeof(float));
}

FLEETRUN_INLINE void add(LaneSums& sums, const Lanes& row) {
  for (int i = 0; i < kLanes; ++i) sums[static_cast<std::size_t>(i)] += static_cast<double>(row[i]);
}

FLEETRUN_INLINE void merge(Moments& all, std::int64_t seen, const Lanes& mean, const Lanes& squares,
                           std::int64_t count) {
  const double share = static_cast<double>(count) / static_cast<double>(seen + count);
  const double weight = static_cast<double>(seen) * share;
  for (int i = 0; i < kLanes; ++i) {
    const auto lane = static_cast<std::size_t>(i);
    const double apart = static_cast<double>(mean[i]) - all.mean[lane];
    all.mean[lane] += apart * share;
    all.squares[lane] += static_cast<double>(squares[i]) + apart * apart * weight;
  }
}

// Of rows behind `seen` others, whose moments `all` has.
FLEETRUN_INLINE void moments_body(const float* x, const Rows& rows, int lanes, std::int64_t seen,
                                  Moments& all) {
  for (std::int64_t first = 0; first < rows.count; first += kPiece) {
    const std::int64_t count = std::min(kPiece, rows.count - first);
    const float* const piece = x + first * rows.stride;
    Lanes row, sums[kChains] = {};
    std::int64_t r = 0;
    for (; r + kChains <= count; r += kChains)
      for (int chain = 0; chain < kChains; ++chain) {
        load(row, piece + (r + chain) * rows.stride, lanes);
        sums[chain] += row;
      }
    for (; r < count; ++r) {
      load(row, piece + r * rows.stride, lanes);
      sums[0] += row;
    }
    const Lanes mean = ((sums[0] + sums[1]) + (sums[2] + sums[3])) / static_cast<float>(count);
    Lanes squares[kChains] = {};
    for (r = 0; r + kChains <= count; r += kChains)
      for (int chain = 0; chain < kChains; ++chain) {
        load(row, piece + (r + chain) * rows.stride, lanes);
        row -= mean;
        squares[chain] += row * row;
      }
    for (; r < count; ++r) {
      load(row, piece + r * rows.stride, lanes);
      row -= mean;
      squares[0] += row * row;
    }
    merge(all, seen + first, mean, (squares[0] + squares[1]) + (squares[2] + squares[3]), count);
  }
}

struct AffineLanes {
  Lanes mean, factor, shift;
};

struct GradientLanes {
  Lanes mean, factor, shift, slope;
};

// What sums are made of; y and dz only where they are looked at.
struct Gradients {
  const float* x;
  const float* dy;
  const float* y = nullptr;
  float* dz = nullptr;
};

// Lane by lane: gcc makes vector instructions of this, but not of a comparison of rows wider than a register.
FLEETRUN_INLINE void relu(Lanes& row) {
  for (int i = 0; i < kLanes; ++i) row[i] = row[i] < 0.0F ? 0.0F : row[i];  // NaN stays NaN
}

FLEETRUN_INLINE void keep_where_positive(Lanes& row, const Lanes& y) {
  for (int i = 0; i < kLanes; ++i) row[i] = y[i] > 0.0F ? row[i] : 0.0F;
}

enum class Then { nothing, relu, add_relu };

template <Then then>
FLEETRUN_INLINE void normalise_body(const float* x, const float* z, float* y, const Rows& rows, int lanes,
                                    const AffineLanes& of) {
  Lanes row, added;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    load(row, x + r * rows.stride, lanes);
    row = (row - of.mean) * of.factor + of.shift;
    if constexpr (then == Then::add_relu) {
      load(added, z + r * rows.stride, lanes);
      row += added;
    }
    if constexpr (then != Then::nothing) relu(row);
    store(row, y + r * rows.stride, lanes);
  }
}

// Which elements of dy count: all; those where normalise_relu let x through; those where y is above 0.
enum class Counted { all, where_normalised, where_y };

template <Counted counted>
FLEETRUN_INLINE void sum_row(const Gradients& from, std::int64_t at, int lanes, const AffineLanes& of,
                             Lanes& sum, Lanes& product) {
  Lanes row, gradient;
  load(row, from.x + at, lanes);
  load(gradient, from.dy + at, lanes);
  row -= of.mean;
  if constexpr (counted == Counted::where_normalised) {
    keep_where_positive(gradient, row * of.factor + of.shift);
  }
  if constexpr (counted == Counted::where_y) {
    Lanes y;
    load(y, from.y + at, lanes);
    keep_where_positive(gradient, y);
    store(gradient, from.dz + at, lanes);
  }
  sum += gradient;
  product += gradient * row;
}

template <Counted counted>
FLEETRUN_INLINE void sums_body(const Gradients& from, const Rows& rows, int lanes, const AffineLanes& of,
                               GradientSums& all) {
  constexpr int kPairs = kChains / 2;  // two sums each
  for (std::int64_t first = 0; first < rows.count; first += kPiece) {
    const std::int64_t last = std::min(rows.count, first + kPiece);
    Lanes sums[kPairs] = {}, products[kPairs] = {};
    std::int64_t r = first;
    for (; r + kPairs <= last; r += kPairs)
      for (int chain = 0; chain < kPairs; ++chain)
        sum_row<counted>(from, (r + chain) * rows.stride, lanes, of, sums[chain], products[chain]);
    for (; r < last; ++r) sum_row<counted>(from, r * rows.stride, lanes, of, sums[0], products[0]);
    add(all.dy, sums[0] + sums[1]);
    add(all.dy_x, products[0] + products[1]);
  }
}

template <Counted counted>
FLEETRUN_INLINE void input_gradient_body(const float* x, const float* dy, float* dx, const Rows& rows,
                                         int lanes, const GradientLanes& of, const Lanes& bias) {
  Lanes row, gradient;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    load(row, x + r * rows.stride, lanes);
    load(gradient, dy + r * rows.stride, lanes);
    row -= of.mean;
    if constexpr (counted == Counted::where_normalised) keep_where_positive(gradient, row * of.factor + bias);
    store(of.factor * (gradient - of.shift - row * of.slope), dx + r * rows.stride, lanes);
  }
}

// A full row is the case that is made fast.
template <Then then>
FLEETRUN_INLINE void normalise_rows(const float* x, const float* z, float* y, const Rows& rows,
                                    const AffineLanes& of) {
  if (rows.lanes == kLanes)
    normalise_body<then>(x, z, y, rows, kLanes, of);
  else
    normalise_body<then>(x, z, y, rows, rows.lanes, of);
}

template <Counted counted>
FLEETRUN_INLINE void sums_rows(const Gradients& from, const Rows& rows, const AffineLanes& of,
                               GradientSums& all) {
  if (rows.lanes == kLanes)
    sums_body<counted>(from, rows, kLanes, of, all);
  else
    sums_body<counted>(from, rows, rows.lanes, of, all);
}

template <Counted counted>
FLEETRUN_INLINE void input_gradient_rows(const float* x, const float* dy, float* dx, const Rows& rows,
                                         const GradientLanes& of, const Lanes& bias) {
  if (rows.lanes == kLanes)
    input_gradient_body<counted>(x, dy, dx, rows, kLanes, of, bias);
  else
    input_gradient_body<counted>(x, dy, dx, rows, rows.lanes, of, bias);
}

// The instruction set is chosen by these four.
FLEETRUN_VECTOR_CLONES void moments_loop(const float* x, const Rows& rows, std::int64_t seen, Moments& all) {
  if (rows.lanes == kLanes)
    moments_body(x, rows, kLanes, seen, all);
  else
    moments_body(x, rows, rows.lanes, seen, all);
}

FLEETRUN_VECTOR_CLONES void normalise_loop(Then then, const float* x, const float* z, float* y,
                                           const Rows& rows, const Affine& affine) {
  AffineLanes of;
  load(of.mean, affine.mean.data(), kLanes);
  load(of.factor, affine.factor.data(), kLanes);
  load(of.shift, affine.shift.data(), kLanes);
  switch (then) {
    case Then::nothing:
      return normalise_rows<Then::nothing>(x, z, y, rows, of);
    case Then::relu:
      return normalise_rows<Then::relu>(x, z, y, rows, of);
    case Then::add_relu:
      return normalise_rows<Then::add_relu>(x, z, y, rows, of);
  }
}

FLEETRUN_VECTOR_CLONES void sums_loop(Counted counted, const Gradients& from, const Rows& rows,
                                      const Affine& affine, GradientSums& all) {
  AffineLanes of;
  load(of.mean, affine.mean.data(), kLanes);
  load(of.factor, affine.factor.data(), kLanes);
  load(of.shift, affine.shift.data(), kLanes);
  switch (counted) {
    case Counted::all:
      return sums_rows<Counted::all>(from, rows, of, all);
    case Counted::where_normalised:
      return sums_rows<Counted::where_normalised>(from, rows, of, all);
    case Counted::where_y:
      return sums_rows<Counted::where_y>(from, rows, of, all);
  }
}

FLEETRUN_VECTOR_CLONES void input_gradient_loop(const float* x, const float* dy, float* dx, const Rows& rows,
                                                const InputGradient& gradient, const LaneFactors* bias) {
  GradientLanes of;
  load(of.mean, gradient.mean.data(), kLanes);
  load(of.factor, gradient.factor.data(), kLanes);
  load(of.shift, gradient.shift.data(), kLanes);
  load(of.slope, gradient.slope.data(), kLanes);
  Lanes back = {};
  if (bias == nullptr) return input_gradient_rows<Counted::all>(x, dy, dx, rows, of, back);
  load(back, bias->data(), kLanes);
  input_gradient_rows<Counted::where_normalised>(x, dy, dx, rows, of, back);
}

const float* floats(const void* elements) { return static_cast<const float*>(elements); }
float* floats(void* elements) { return static_cast<float*>(elements); }

// Calls loop(inputs, output, rows) for pieces of bf16 rows, which are f32 in the first cache. `out` may be null.
template <std::size_t inputs, typename Loop>
void each_wide_piece(const std::array<const void*, inputs>& in, void* out, const Rows& rows, Loop&& loop) {
  alignas(64) float wide[inputs + 1][kPiece * kLanes];
  std::array<const float*, inputs> from;
  for (std::size_t i = 0; i < inputs; ++i) from[i] = wide[i];
  for (std::int64_t first = 0; first < rows.count; first += kPiece) {
    const NarrowRows narrow = {std::min(kPiece, rows.count - first), rows.stride, rows.lanes, kLanes};
    const std::int64_t offset = first * rows.stride;
    for (std::size_t i = 0; i < inputs; ++i)
      widen_rows(static_cast<const Bf16*>(in[i]) + offset, wide[i], narrow);
    loop(from, wide[inputs], Rows{.count = narrow.count, .lanes = rows.lanes});
    if (out != nullptr) narrow_rows(wide[inputs], static_cast<Bf16*>(out) + offset, narrow);
  }
}

void normalise_and(Then then, const void* x, const void* z, void* y, const Rows& rows, const Affine& affine) {
  if (!rows.is_narrow) return normalise_loop(then, floats(x), floats(z), floats(y), rows, affine);
  if (then == Then::add_relu)
    return each_wide_piece(std::array{x, z}, y, rows, [&](const auto& in, float* out, const Rows& piece) {
      normalise_loop(then, in[0], in[1], out, piece, affine);
    });
  each_wide_piece(std::array{x}, y, rows, [&](const auto& in, float* out, const Rows& piece) {
    normalise_loop(then, in[0], nullptr, out, piece, affine);
  });
}

GradientSums sums_of(Counted counted, const void* x, const void* dy, const Rows& rows, const Affine& affine) {
  GradientSums all;
  if (!rows.is_narrow) {
    sums_loop(counted, {.x = floats(x), .dy = floats(dy)}, rows, affine, all);
    return all;
  }
  each_wide_piece(std::array{x, dy}, nullptr, rows, [&](const auto& in, float*, const Rows& piece) {
    sums_loop(counted, {.x = in[0], .dy = in[1]}, piece, affine, all);
  });
  return all;
}

void input_gradient_of(const void* x, const void* dy, void* dx, const Rows& rows,
                       const InputGradient& gradient, const LaneFactors* bias) {
  if (!rows.is_narrow) return input_gradient_loop(floats(x), floats(dy), floats(dx), rows, gradient, bias);
  each_wide_piece(std::array{x, dy}, dx, rows, [&](const auto& in, float* out, const Rows& piece) {
    input_gradient_loop(in[0], in[1], out, piece, gradient, bias);
  });
}

}  // namespace

Moments moments_of(const void* x, const Rows& rows) {
  Moments all;
  if (!rows.is_narrow) {
    moments_loop(floats(x), rows, 0, all);
    return all;
  }
  std::int64_t seen = 0;
  each_wide_piece(std::array{x}, nullptr, rows, [&](const auto& in, float*, const Rows& piece) {
    moments_loop(in[0], piece, seen, all);
    seen += piece.count;
  });
  return all;
}

void normalise(const void* x, void* y, const Rows& rows, const Affine& affine) {
  normalise_and(Then::nothing, x, nullptr, y, rows, affine);
}

void normalise_relu(const void* x, void* y, const Rows& rows, const Affine& affine) {
  normalise_and(Then::relu, x, nullptr, y, rows, affine);
}

void normalise_add_relu(const void* x, const void* z, void* y, const Rows& rows, const Affine& affine) {
  normalise_and(Then::add_relu, x, z, y, rows, affine);
}

GradientSums gradient_sums(const void* x, const void* dy, const Rows& rows, const LaneFactors& mean) {
  return sums_of(Counted::all, x, dy, rows, {.mean = mean, .factor = {}, .shift = {}});
}

GradientSums relu_gradient_sums(const void* x, const void* dy, const Rows& rows, const Affine& affine) {
  return sums_of(Counted::where_normalised, x, dy, rows, affine);
}

GradientSums masked_gradient_sums(const void* x, const void* y, const void* dy, void* dz, const Rows& rows,
                                  const LaneFactors& mean) {
  const Affine affine = {.mean = mean, .factor = {}, .shift = {}};
  GradientSums all;
  if (!rows.is_narrow) {
    sums_loop(Counted::where_y, {.x = floats(x), .dy = floats(dy), .y = floats(y), .dz = floats(dz)}, rows,
              affine, all);
    return all;
  }
  each_wide_piece(std::array{x, dy, y}, dz, rows, [&](const auto& in, float* out, const Rows& piece) {
    sums_loop(Counted::where_y, {.x = in[0], .dy = in[1], .y = in[2], .dz = out}, piece, affine, all);
  });
  return all;
}

void input_gradient(const void* x, const void* dy, void* dx, const Rows& rows,
                    const InputGradient& gradient) {
  input_gradient_of(x, dy, dx, rows, gradient, nullptr);
}

void relu_input_gradient(const void* x, const void* dy, void* dx, const Rows& rows,
                         const InputGradient& gradient, const LaneFactors& bias) {
  input_gradient_of(x, dy, dx, rows, gradient, &bias);
}

}  // namespace fleetrun::runtime::cpu
