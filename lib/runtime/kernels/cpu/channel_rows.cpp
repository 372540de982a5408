#include "runtime/kernels/cpu/channel_rows.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/vector_clones.h"
#include "runtime/kernels/cpu/narrow.h"

namespace fleetrun::runtime::cpu {
namespace {

// kLanes elements in a register, or in as many as the processor needs. Never passed to a function that is not inlined.
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using Bits = std::int32_t __attribute__((vector_size(kLanes * sizeof(float))));
using Unsigned = std::uint32_t __attribute__((vector_size(kLanes * sizeof(float))));
using Halves = Bf16 __attribute__((vector_size(kLanes * sizeof(Bf16))));

// Rows summed in f32: of kLanes elements 4 KiB, which the second look at them finds in the first cache.
constexpr std::int64_t kPiece = 64;
constexpr int kTogether = 4;  // rows that are added up before their sum goes to that of the piece
// Registers that are summed side by side: of 512 bytes or more of a row, which the processor fetches in advance.
constexpr std::int64_t kMostRegisters = 16;

#define FLEETRUN_INLINE __attribute__((always_inline)) inline

FLEETRUN_INLINE void load(Lanes& row, const float* from, std::int64_t lanes) {
  if (lanes == kLanes) {
    std::memcpy(&row, from, sizeof row);
  } else {
    row = Lanes{};
    std::memcpy(&row, from, static_cast<std::size_t>(lanes) * sizeof(float));
  }
}

FLEETRUN_INLINE void load(Lanes& row, const Bf16* from, std::int64_t lanes) {
  Halves halves{};
  if (lanes == kLanes)
    std::memcpy(&halves, from, sizeof halves);
  else
    std::memcpy(&halves, from, static_cast<std::size_t>(lanes) * sizeof(Bf16));
  const Unsigned bits = __builtin_convertvector(halves, Unsigned) << 16;
  std::memcpy(&row, &bits, sizeof row);
}

FLEETRUN_INLINE void store(const Lanes& row, float* to, std::int64_t lanes) {
  std::memcpy(to, &row, static_cast<std::size_t>(lanes) * sizeof(float));
}

// As f32_to_bf16: to the nearest, ties to even; NaN stays NaN.
FLEETRUN_INLINE void store(const Lanes& row, Bf16* to, std::int64_t lanes) {
  Unsigned bits;
  Bits size;
  std::memcpy(&bits, &row, sizeof bits);
  std::memcpy(&size, &row, sizeof size);
  const Unsigned nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const Unsigned chosen = (size & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : nearest;
  const Halves halves = __builtin_convertvector(chosen, Halves);
  std::memcpy(to, &halves, static_cast<std::size_t>(lanes) * sizeof(Bf16));
}

FLEETRUN_INLINE void add(double* sums, const Lanes& row, std::int64_t lanes) {
  for (int i = 0; i < lanes; ++i) sums[i] += static_cast<double>(row[i]);
}

// The moments of `count` rows to those of `seen` others.
FLEETRUN_INLINE void merge(double* all_mean, double* all_squares, std::int64_t seen, const Lanes& mean,
                           const Lanes& squares, std::int64_t count, std::int64_t lanes) {
  const double share = static_cast<double>(count) / static_cast<double>(seen + count);
  const double weight = static_cast<double>(seen) * share;
  for (int i = 0; i < lanes; ++i) {
    const double apart = static_cast<double>(mean[i]) - all_mean[i];
    all_mean[i] += apart * share;
    all_squares[i] += static_cast<double>(squares[i]) + apart * apart * weight;
  }
}

// Lane by lane: gcc makes vector instructions of this, but not of a comparison of rows wider than a register.
FLEETRUN_INLINE void relu(Lanes& row) {
  for (int i = 0; i < kLanes; ++i) row[i] = row[i] < 0.0F ? 0.0F : row[i];  // NaN stays NaN
}

FLEETRUN_INLINE void keep_where_positive(Lanes& row, const Lanes& y) {
  for (int i = 0; i < kLanes; ++i) row[i] = y[i] > 0.0F ? row[i] : 0.0F;
}

// What is not looked at is null.
template <typename T>
FLEETRUN_INLINE T* ahead(T* elements, std::int64_t by) {
  return elements == nullptr ? nullptr : elements + by;
}

FLEETRUN_INLINE Affine ahead(const Affine& affine, std::int64_t by) {
  return {ahead(affine.mean, by), ahead(affine.factor, by), ahead(affine.shift, by)};
}

using One = std::integral_constant<std::int64_t, 1>;
using Full = std::integral_constant<std::int64_t, kLanes>;

// body(first lane, registers, lanes of each) for what is walked over together, all registers of a row before the next row.
// Numbers that are often met are constants, which makes these cases fast.
template <typename Body>
FLEETRUN_INLINE void walk(std::int64_t lanes, Body&& body) {
  const std::int64_t whole = lanes / kLanes;
  if (whole == 1)
    body(std::int64_t{0}, One(), Full());
  else
    for (std::int64_t i = 0; i < whole; i += kMostRegisters)
      body(i * kLanes, std::min(kMostRegisters, whole - i), Full());
  if (whole * kLanes < lanes) body(whole * kLanes, One(), lanes - whole * kLanes);
}

template <typename T, typename Registers, typename OfEach>
FLEETRUN_INLINE void moments_body(const T* x, const Rows& rows, Registers registers, OfEach lanes,
                                  double* all_mean, double* all_squares) {
  std::fill_n(all_mean, (registers - 1) * kLanes + lanes, 0.0);
  std::fill_n(all_squares, (registers - 1) * kLanes + lanes, 0.0);
  for (std::int64_t first = 0; first < rows.count; first += kPiece) {
    const std::int64_t count = std::min(kPiece, rows.count - first);
    const T* const piece = x + first * rows.stride;
    Lanes row[kTogether], mean[kMostRegisters] = {}, squares[kMostRegisters] = {};
    std::int64_t r = 0;
    for (; r + kTogether <= count; r += kTogether)
      for (std::int64_t i = 0; i < registers; ++i) {
        for (int k = 0; k < kTogether; ++k) load(row[k], piece + (r + k) * rows.stride + i * kLanes, lanes);
        mean[i] += (row[0] + row[1]) + (row[2] + row[3]);
      }
    for (; r < count; ++r)
      for (std::int64_t i = 0; i < registers; ++i) {
        load(row[0], piece + r * rows.stride + i * kLanes, lanes);
        mean[i] += row[0];
      }
    for (std::int64_t i = 0; i < registers; ++i) mean[i] /= static_cast<float>(count);
    for (r = 0; r + kTogether <= count; r += kTogether)
      for (std::int64_t i = 0; i < registers; ++i) {
        for (int k = 0; k < kTogether; ++k) {
          load(row[k], piece + (r + k) * rows.stride + i * kLanes, lanes);
          row[k] -= mean[i];
          row[k] *= row[k];
        }
        squares[i] += (row[0] + row[1]) + (row[2] + row[3]);
      }
    for (; r < count; ++r)
      for (std::int64_t i = 0; i < registers; ++i) {
        load(row[0], piece + r * rows.stride + i * kLanes, lanes);
        row[0] -= mean[i];
        squares[i] += row[0] * row[0];
      }
    for (std::int64_t i = 0; i < registers; ++i)
      merge(all_mean + i * kLanes, all_squares + i * kLanes, first, mean[i], squares[i], count, lanes);
  }
}

enum class Then { nothing, relu, add_relu };

template <Then then, typename T, typename Registers, typename OfEach>
FLEETRUN_INLINE void normalise_body(const T* x, const T* z, T* y, const Rows& rows, Registers registers,
                                    OfEach lanes, const Affine& affine) {
  Lanes row, added, of;
  for (std::int64_t r = 0; r < rows.count; ++r)
    for (std::int64_t i = 0; i < registers; ++i) {
      const std::int64_t at = r * rows.stride + i * kLanes;
      load(row, x + at, lanes);
      load(of, affine.mean + i * kLanes, kLanes);
      row -= of;
      load(of, affine.factor + i * kLanes, kLanes);
      row *= of;
      load(of, affine.shift + i * kLanes, kLanes);
      row += of;
      if constexpr (then == Then::add_relu) {
        load(added, z + at, lanes);
        row += added;
      }
      if constexpr (then != Then::nothing) relu(row);
      store(row, y + at, lanes);
    }
}

// Which elements of dy count: all; those where normalise_relu let x through; those where y is above 0.
enum class Counted { all, where_normalised, where_y };

// What sums are made of; y and dz only where they are looked at.
struct Gradients {
  const void* x;
  const void* dy;
  const void* y = nullptr;
  void* dz = nullptr;
};

// dy in `gradient`, x - mean in `row`.
template <Counted counted, typename T, typename OfEach>
FLEETRUN_INLINE void load_counted(const T* x, const T* dy, OfEach lanes, const Lanes& mean,
                                  const Affine& affine, Lanes& row, Lanes& gradient) {
  load(row, x, lanes);
  load(gradient, dy, lanes);
  row -= mean;
  if constexpr (counted == Counted::where_normalised) {
    Lanes factor, shift;
    load(factor, affine.factor, kLanes);
    load(shift, affine.shift, kLanes);
    keep_where_positive(gradient, row * factor + shift);
  }
}

template <Counted counted, typename T, typename Registers, typename OfEach>
FLEETRUN_INLINE void sums_body(const T* x, const T* dy, const T* y, T* dz, const Rows& rows,
                               Registers registers, OfEach lanes, const Affine& affine,
                               const GradientSums& all) {
  std::fill_n(all.dy, (registers - 1) * kLanes + lanes, 0.0);
  std::fill_n(all.dy_x, (registers - 1) * kLanes + lanes, 0.0);
  for (std::int64_t first = 0; first < rows.count; first += kPiece) {
    const std::int64_t last = std::min(rows.count, first + kPiece);
    Lanes sums[kMostRegisters] = {}, products[kMostRegisters] = {};
    const auto add_rows = [&](std::int64_t r, auto together) __attribute__((always_inline)) {
      for (std::int64_t i = 0; i < registers; ++i) {
        const Affine of = ahead(affine, i * kLanes);
        Lanes mean, row, gradient, sum = {}, product = {};
        load(mean, of.mean, kLanes);
        for (int k = 0; k < together; ++k) {
          const std::int64_t at = (r + k) * rows.stride + i * kLanes;
          load_counted<counted>(x + at, dy + at, lanes, mean, of, row, gradient);
          if constexpr (counted == Counted::where_y) {
            Lanes output;
            load(output, y + at, lanes);
            keep_where_positive(gradient, output);
            store(gradient, dz + at, lanes);
          }
          sum += gradient;
          product += gradient * row;
        }
        sums[i] += sum;
        products[i] += product;
      }
    };
    std::int64_t r = first;
    for (; r + kTogether <= last; r += kTogether) add_rows(r, std::integral_constant<int, kTogether>());
    for (; r < last; ++r) add_rows(r, std::integral_constant<int, 1>());
    for (std::int64_t i = 0; i < registers; ++i) {
      add(all.dy + i * kLanes, sums[i], lanes);
      add(all.dy_x + i * kLanes, products[i], lanes);
    }
  }
}

// `affine` is where dy counts: its mean is that of `gradient`.
template <Counted counted, typename T, typename Registers, typename OfEach>
FLEETRUN_INLINE void input_gradient_body(const T* x, const T* dy, T* dx, const Rows& rows,
                                         Registers registers, OfEach lanes, const InputGradient& of,
                                         const Affine& affine) {
  Lanes row, gradient, mean, factor, shift, slope;
  for (std::int64_t r = 0; r < rows.count; ++r)
    for (std::int64_t i = 0; i < registers; ++i) {
      const std::int64_t at = r * rows.stride + i * kLanes;
      load(mean, of.mean + i * kLanes, kLanes);
      load(factor, of.factor + i * kLanes, kLanes);
      load(shift, of.shift + i * kLanes, kLanes);
      load(slope, of.slope + i * kLanes, kLanes);
      load_counted<counted>(x + at, dy + at, lanes, mean, ahead(affine, i * kLanes), row, gradient);
      store(factor * (gradient - shift - row * slope), dx + at, lanes);
    }
}

template <typename T>
FLEETRUN_INLINE void moments_walk(const T* x, const Rows& rows, double* mean, double* squares) {
  walk(
      rows.lanes, [&](std::int64_t lane, auto registers, auto lanes) __attribute__((always_inline)) {
        moments_body(x + lane, rows, registers, lanes, mean + lane, squares + lane);
      });
}

template <Then then, typename T>
FLEETRUN_INLINE void normalise_walk(const T* x, const T* z, T* y, const Rows& rows, const Affine& affine) {
  walk(
      rows.lanes, [&](std::int64_t lane, auto registers, auto lanes) __attribute__((always_inline)) {
        normalise_body<then>(x + lane, ahead(z, lane), y + lane, rows, registers, lanes, ahead(affine, lane));
      });
}

template <Counted counted, typename T>
FLEETRUN_INLINE void sums_walk(const Gradients& from, const Rows& rows, const Affine& affine,
                               const GradientSums& all) {
  const auto* x = static_cast<const T*>(from.x);
  const auto* dy = static_cast<const T*>(from.dy);
  const auto* y = static_cast<const T*>(from.y);
  auto* dz = static_cast<T*>(from.dz);
  walk(
      rows.lanes, [&](std::int64_t lane, auto registers, auto lanes) __attribute__((always_inline)) {
        sums_body<counted>(x + lane, dy + lane, ahead(y, lane), ahead(dz, lane), rows, registers, lanes,
                           ahead(affine, lane), {all.dy + lane, all.dy_x + lane});
      });
}

template <Counted counted, typename T>
FLEETRUN_INLINE void input_gradient_walk(const T* x, const T* dy, T* dx, const Rows& rows,
                                         const InputGradient& gradient, const Affine& affine) {
  walk(
      rows.lanes, [&](std::int64_t lane, auto registers, auto lanes) __attribute__((always_inline)) {
        input_gradient_body<counted>(
            x + lane, dy + lane, dx + lane, rows, registers, lanes,
            {gradient.mean + lane, gradient.factor + lane, gradient.shift + lane, gradient.slope + lane},
            ahead(affine, lane));
      });
}

const float* floats(const void* elements) { return static_cast<const float*>(elements); }
float* floats(void* elements) { return static_cast<float*>(elements); }
const Bf16* halves(const void* elements) { return static_cast<const Bf16*>(elements); }
Bf16* halves(void* elements) { return static_cast<Bf16*>(elements); }

// The instruction set is chosen by these.
FLEETRUN_VECTOR_CLONES void moments_loop(const void* x, const Rows& rows, double* mean, double* squares) {
  if (rows.is_narrow)
    moments_walk(halves(x), rows, mean, squares);
  else
    moments_walk(floats(x), rows, mean, squares);
}

template <Then then>
FLEETRUN_INLINE void normalise_either(const void* x, const void* z, void* y, const Rows& rows,
                                      const Affine& affine) {
  if (rows.is_narrow)
    normalise_walk<then>(halves(x), halves(z), halves(y), rows, affine);
  else
    normalise_walk<then>(floats(x), floats(z), floats(y), rows, affine);
}

FLEETRUN_VECTOR_CLONES void normalise_loop(Then then, const void* x, const void* z, void* y, const Rows& rows,
                                           const Affine& affine) {
  switch (then) {
    case Then::nothing:
      return normalise_either<Then::nothing>(x, z, y, rows, affine);
    case Then::relu:
      return normalise_either<Then::relu>(x, z, y, rows, affine);
    case Then::add_relu:
      return normalise_either<Then::add_relu>(x, z, y, rows, affine);
  }
}

template <Counted counted>
FLEETRUN_INLINE void sums_either(const Gradients& from, const Rows& rows, const Affine& affine,
                                 const GradientSums& all) {
  if (rows.is_narrow)
    sums_walk<counted, Bf16>(from, rows, affine, all);
  else
    sums_walk<counted, float>(from, rows, affine, all);
}

FLEETRUN_VECTOR_CLONES void sums_loop(Counted counted, const Gradients& from, const Rows& rows,
                                      const Affine& affine, const GradientSums& all) {
  switch (counted) {
    case Counted::all:
      return sums_either<Counted::all>(from, rows, affine, all);
    case Counted::where_normalised:
      return sums_either<Counted::where_normalised>(from, rows, affine, all);
    case Counted::where_y:
      return sums_either<Counted::where_y>(from, rows, affine, all);
  }
}

template <Counted counted>
FLEETRUN_INLINE void input_gradient_either(const void* x, const void* dy, void* dx, const Rows& rows,
                                           const InputGradient& gradient, const Affine& affine) {
  if (rows.is_narrow)
    input_gradient_walk<counted>(halves(x), halves(dy), halves(dx), rows, gradient, affine);
  else
    input_gradient_walk<counted>(floats(x), floats(dy), floats(dx), rows, gradient, affine);
}

FLEETRUN_VECTOR_CLONES void input_gradient_loop(const void* x, const void* dy, void* dx, const Rows& rows,
                                                const InputGradient& gradient, const float* bias) {
  const Affine affine = {gradient.mean, gradient.factor, bias};
  if (bias == nullptr) return input_gradient_either<Counted::all>(x, dy, dx, rows, gradient, affine);
  input_gradient_either<Counted::where_normalised>(x, dy, dx, rows, gradient, affine);
}

}  // namespace

void moments_of(const void* x, const Rows& rows, double* mean, double* squares) {
  moments_loop(x, rows, mean, squares);
}

void normalise(const void* x, void* y, const Rows& rows, const Affine& affine) {
  normalise_loop(Then::nothing, x, nullptr, y, rows, affine);
}

void normalise_relu(const void* x, void* y, const Rows& rows, const Affine& affine) {
  normalise_loop(Then::relu, x, nullptr, y, rows, affine);
}

void normalise_add_relu(const void* x, const void* z, void* y, const Rows& rows, const Affine& affine) {
  normalise_loop(Then::add_relu, x, z, y, rows, affine);
}

void gradient_sums(const void* x, const void* dy, const Rows& rows, const float* mean,
                   const GradientSums& sums) {
  sums_loop(Counted::all, {.x = x, .dy = dy}, rows, {.mean = mean, .factor = nullptr, .shift = nullptr},
            sums);
}

void relu_gradient_sums(const void* x, const void* dy, const Rows& rows, const Affine& affine,
                        const GradientSums& sums) {
  sums_loop(Counted::where_normalised, {.x = x, .dy = dy}, rows, affine, sums);
}

void masked_gradient_sums(const void* x, const void* y, const void* dy, void* dz, const Rows& rows,
                          const float* mean, const GradientSums& sums) {
  sums_loop(Counted::where_y, {.x = x, .dy = dy, .y = y, .dz = dz}, rows,
            {.mean = mean, .factor = nullptr, .shift = nullptr}, sums);
}

void input_gradient(const void* x, const void* dy, void* dx, const Rows& rows,
                    const InputGradient& gradient) {
  input_gradient_loop(x, dy, dx, rows, gradient, nullptr);
}

void relu_input_gradient(const void* x, const void* dy, void* dx, const Rows& rows,
                         const InputGradient& gradient, const float* bias) {
  input_gradient_loop(x, dy, dx, rows, gradient, bias);
}

}  // namespace fleetrun::runtime::cpu
