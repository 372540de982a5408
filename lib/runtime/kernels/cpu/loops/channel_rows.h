// The loops of batch_norm over channels that lie side by side, in rows. Sums are carried in f32 over a few dozen rows and in
// f64 above that, so that the statistics of a large batch are as exact as those of a small. Elements are f32 or bf16; what
// is between reading and writing them is f32.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/kernels/cpu/loops/lanes.h"

namespace fleetrun::runtime::cpu {

struct Rows {
  std::int64_t count = 0;
  std::int64_t stride = kLanes;  // elements from one row to the next
  std::int64_t lanes = kLanes;   // that count in a row
  bool is_narrow = false;        // bf16
};

using LaneSums = std::array<double, kLanes>;
using LaneFactors = std::array<float, kLanes>;

// Factors and sums are arrays with a place for each lane; those that are read go on to a whole number of kLanes.

// mean, and sum of (x - mean)^2 as squares. By Chan, Golub, LeVeque 1979: each piece's own, then put together.
void moments_of(const void* x, const Rows& rows, double* mean, double* squares);

struct Affine {
  const float* mean;
  const float* factor;
  const float* shift;
};

// y = (x - mean) * factor + shift. y may be x.
void normalise(const void* x, void* y, const Rows& rows, const Affine& affine);

// y = max(that, 0).
void normalise_relu(const void* x, void* y, const Rows& rows, const Affine& affine);

// y = max(that + z, 0). y may be x or z.
void normalise_add_relu(const void* x, const void* z, void* y, const Rows& rows, const Affine& affine);

struct GradientSums {
  double* dy;
  double* dy_x;  // sum of dy * (x - mean)
};

void gradient_sums(const void* x, const void* dy, const Rows& rows, const float* mean,
                   const GradientSums& sums);

// Where normalise_relu made 0 of x, dy counts as 0.
void relu_gradient_sums(const void* x, const void* dy, const Rows& rows, const Affine& affine,
                        const GradientSums& sums);

struct MaskedGradients {
  const void* x = nullptr;
  const void* y = nullptr;
  const void* dy = nullptr;
  const void* dy_too = nullptr;  // for none
  void* dz = nullptr;            // may be dy or dy_too
};

// What counts is dy + dy_too, rounded to their type, and 0 where y is 0; it is written as dz.
void masked_gradient_sums(const MaskedGradients& gradients, const Rows& rows, const float* mean,
                          const GradientSums& sums);

struct InputGradient {
  const float* mean;
  const float* factor;
  const float* shift;
  const float* slope;
};

// dx = factor * (dy - shift - (x - mean) * slope). dx may be dy.
void input_gradient(const void* x, const void* dy, void* dx, const Rows& rows, const InputGradient& gradient);

// The same, with dy as relu_gradient_sums counts it; `bias` is the shift of normalise_relu.
void relu_input_gradient(const void* x, const void* dy, void* dx, const Rows& rows,
                         const InputGradient& gradient, const float* bias);

}  // namespace fleetrun::runtime::cpu
