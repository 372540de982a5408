// The loops of batch_norm over channels that lie side by side: up to kLanes of them, in rows. Sums are carried in f32
// over a few dozen rows and in f64 above that, so that the statistics of a large batch are as exact as those of a small.
#pragma once
#include <array>
#include <cstdint>

namespace fleetrun::runtime::cpu {

constexpr int kLanes = 16;  // floats of the widest vector register, and of oneDNN's blocks

struct Rows {
  std::int64_t count = 0;
  std::int64_t stride = kLanes;  // floats from one row to the next
  int lanes = kLanes;            // 1 to kLanes
};

using LaneSums = std::array<double, kLanes>;
using LaneFactors = std::array<float, kLanes>;

struct Moments {
  LaneSums mean{};
  LaneSums squares{};  // sum of (x - mean)^2
};

// By Chan, Golub, LeVeque 1979: each piece's own mean and squares, then put together.
Moments moments_of(const float* x, const Rows& rows);

// y = (x - mean) * factor + shift. y may be x.
void normalise(const float* x, float* y, const Rows& rows, const LaneFactors& mean, const LaneFactors& factor,
               const LaneFactors& shift);

struct GradientSums {
  LaneSums dy{};
  LaneSums dy_x{};  // sum of dy * (x - mean)
};
GradientSums gradient_sums(const float* x, const float* dy, const Rows& rows, const LaneFactors& mean);

// dx = factor * (dy - shift - (x - mean) * slope). dx may be dy.
void input_gradient(const float* x, const float* dy, float* dx, const Rows& rows, const LaneFactors& mean,
                    const LaneFactors& factor, const LaneFactors& shift, const LaneFactors& slope);

}  // namespace fleetrun::runtime::cpu
