#include "runtime/kernels/cpu/channel_rows.h"

#include <algorithm>
#include <cstring>

#include "base/vector_clones.h"

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

FLEETRUN_INLINE void moments_body(const float* x, const Rows& rows, int lanes, Moments& all) {
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
    merge(all, first, mean, (squares[0] + squares[1]) + (squares[2] + squares[3]), count);
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
FLEETRUN_VECTOR_CLONES void moments_loop(const float* x, const Rows& rows, Moments& all) {
  if (rows.lanes == kLanes)
    moments_body(x, rows, kLanes, all);
  else
    moments_body(x, rows, rows.lanes, all);
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

}  // namespace

Moments moments_of(const float* x, const Rows& rows) {
  Moments all;
  moments_loop(x, rows, all);
  return all;
}

void normalise(const float* x, float* y, const Rows& rows, const Affine& affine) {
  normalise_loop(Then::nothing, x, nullptr, y, rows, affine);
}

void normalise_relu(const float* x, float* y, const Rows& rows, const Affine& affine) {
  normalise_loop(Then::relu, x, nullptr, y, rows, affine);
}

void normalise_add_relu(const float* x, const float* z, float* y, const Rows& rows, const Affine& affine) {
  normalise_loop(Then::add_relu, x, z, y, rows, affine);
}

GradientSums gradient_sums(const float* x, const float* dy, const Rows& rows, const LaneFactors& mean) {
  GradientSums all;
  sums_loop(Counted::all, {.x = x, .dy = dy}, rows, {.mean = mean, .factor = {}, .shift = {}}, all);
  return all;
}

GradientSums relu_gradient_sums(const float* x, const float* dy, const Rows& rows, const Affine& affine) {
  GradientSums all;
  sums_loop(Counted::where_normalised, {.x = x, .dy = dy}, rows, affine, all);
  return all;
}

GradientSums masked_gradient_sums(const float* x, const float* y, const float* dy, float* dz,
                                  const Rows& rows, const LaneFactors& mean) {
  GradientSums all;
  sums_loop(Counted::where_y, {.x = x, .dy = dy, .y = y, .dz = dz}, rows,
            {.mean = mean, .factor = {}, .shift = {}}, all);
  return all;
}

void input_gradient(const float* x, const float* dy, float* dx, const Rows& rows,
                    const InputGradient& gradient) {
  input_gradient_loop(x, dy, dx, rows, gradient, nullptr);
}

void relu_input_gradient(const float* x, const float* dy, float* dx, const Rows& rows,
                         const InputGradient& gradient, const LaneFactors& bias) {
  input_gradient_loop(x, dy, dx, rows, gradient, &bias);
}

}  // namespace fleetrun::runtime::cpu
