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

FLEETRUN_INLINE void normalise_body(const float* x, float* y, const Rows& rows, int lanes, const Lanes& mean,
                                    const Lanes& factor, const Lanes& shift) {
  Lanes row;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    load(row, x + r * rows.stride, lanes);
    store((row - mean) * factor + shift, y + r * rows.stride, lanes);
  }
}

FLEETRUN_INLINE void sums_body(const float* x, const float* dy, const Rows& rows, int lanes,
                               const Lanes& mean, GradientSums& all) {
  constexpr int kPairs = kChains / 2;  // two sums each
  for (std::int64_t first = 0; first < rows.count; first += kPiece) {
    const std::int64_t last = std::min(rows.count, first + kPiece);
    Lanes row, gradient, sums[kPairs] = {}, products[kPairs] = {};
    std::int64_t r = first;
    for (; r + kPairs <= last; r += kPairs)
      for (int chain = 0; chain < kPairs; ++chain) {
        load(row, x + (r + chain) * rows.stride, lanes);
        load(gradient, dy + (r + chain) * rows.stride, lanes);
        sums[chain] += gradient;
        products[chain] += gradient * (row - mean);
      }
    for (; r < last; ++r) {
      load(row, x + r * rows.stride, lanes);
      load(gradient, dy + r * rows.stride, lanes);
      sums[0] += gradient;
      products[0] += gradient * (row - mean);
    }
    add(all.dy, sums[0] + sums[1]);
    add(all.dy_x, products[0] + products[1]);
  }
}

FLEETRUN_INLINE void input_gradient_body(const float* x, const float* dy, float* dx, const Rows& rows,
                                         int lanes, const Lanes& mean, const Lanes& factor,
                                         const Lanes& shift, const Lanes& slope) {
  Lanes row, gradient;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    load(row, x + r * rows.stride, lanes);
    load(gradient, dy + r * rows.stride, lanes);
    store(factor * (gradient - shift - (row - mean) * slope), dx + r * rows.stride, lanes);
  }
}

// The instruction set is chosen by these four; a full row is the case that is made fast.
FLEETRUN_VECTOR_CLONES void moments_loop(const float* x, const Rows& rows, Moments& all) {
  if (rows.lanes == kLanes)
    moments_body(x, rows, kLanes, all);
  else
    moments_body(x, rows, rows.lanes, all);
}

FLEETRUN_VECTOR_CLONES void normalise_loop(const float* x, float* y, const Rows& rows, const float* mean,
                                           const float* factor, const float* shift) {
  Lanes m, f, s;
  load(m, mean, kLanes);
  load(f, factor, kLanes);
  load(s, shift, kLanes);
  if (rows.lanes == kLanes)
    normalise_body(x, y, rows, kLanes, m, f, s);
  else
    normalise_body(x, y, rows, rows.lanes, m, f, s);
}

FLEETRUN_VECTOR_CLONES void sums_loop(const float* x, const float* dy, const Rows& rows, const float* mean,
                                      GradientSums& all) {
  Lanes m;
  load(m, mean, kLanes);
  if (rows.lanes == kLanes)
    sums_body(x, dy, rows, kLanes, m, all);
  else
    sums_body(x, dy, rows, rows.lanes, m, all);
}

FLEETRUN_VECTOR_CLONES void input_gradient_loop(const float* x, const float* dy, float* dx, const Rows& rows,
                                                const float* mean, const float* factor, const float* shift,
                                                const float* slope) {
  Lanes m, f, s, k;
  load(m, mean, kLanes);
  load(f, factor, kLanes);
  load(s, shift, kLanes);
  load(k, slope, kLanes);
  if (rows.lanes == kLanes)
    input_gradient_body(x, dy, dx, rows, kLanes, m, f, s, k);
  else
    input_gradient_body(x, dy, dx, rows, rows.lanes, m, f, s, k);
}

}  // namespace

Moments moments_of(const float* x, const Rows& rows) {
  Moments all;
  moments_loop(x, rows, all);
  return all;
}

void normalise(const float* x, float* y, const Rows& rows, const LaneFactors& mean, const LaneFactors& factor,
               const LaneFactors& shift) {
  normalise_loop(x, y, rows, mean.data(), factor.data(), shift.data());
}

GradientSums gradient_sums(const float* x, const float* dy, const Rows& rows, const LaneFactors& mean) {
  GradientSums all;
  sums_loop(x, dy, rows, mean.data(), all);
  return all;
}

void input_gradient(const float* x, const float* dy, float* dx, const Rows& rows, const LaneFactors& mean,
                    const LaneFactors& factor, const LaneFactors& shift, const LaneFactors& slope) {
  input_gradient_loop(x, dy, dx, rows, mean.data(), factor.data(), shift.data(), slope.data());
}

}  // namespace fleetrun::runtime::cpu
