#include "runtime/kernels/cpu/channel_rows.h"

#include <algorithm>
#include <cstring>

#include "base/vector_clones.h"
#include "runtime/kernels/cpu/lanes.h"

namespace fleetrun::runtime::cpu {
namespace {

// Rows summed in f32: of kLanes elements 4 KiB, which the second look at them finds in the first cache.
constexpr std::int64_t kPiece = 64;
constexpr int kTogether = 4;  // rows that are added up before their sum goes to that of the piece
// Registers that are summed side by side: of 512 bytes or more of a row, which the processor fetches in advance.
constexpr int kMostRegisters = 16;

// f32 in the order of memory to that of the registers of T, and back.
template <typename T>
FLEETRUN_INLINE void part(Registers<T>& row) {
  if constexpr (kRegisters<T> == 2) {
    constexpr Bits kEven = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
    const Lanes even = __builtin_shuffle(row[0], row[1], kEven);
    row[1] = __builtin_shuffle(row[0], row[1], kEven + 1);
    row[0] = even;
  }
}
template <typename T>
FLEETRUN_INLINE void join(Registers<T>& row) {
  if constexpr (kRegisters<T> == 2) {
    constexpr Bits kFirst = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
    const Lanes first = __builtin_shuffle(row[0], row[1], kFirst);
    row[1] = __builtin_shuffle(row[0], row[1], kFirst + 8);
    row[0] = first;
  }
}

// The factors of all registers that are walked over together.
template <typename T>
using Factors = Registers<T>[kMostRegisters / kRegisters<T>];

template <typename T, typename Loads>
FLEETRUN_INLINE void take(Factors<T>& factors, const float* from, Loads loads, std::int64_t lanes) {
  for (std::int64_t i = 0; i < loads; ++i) {
    Registers<T>& row = factors[i];
    for (Lanes& of : row) of = Lanes{};
    std::memcpy(&row, from + i * kWidth<T>, static_cast<std::size_t>(lanes) * sizeof(float));
    for (Lanes& of : row) shorten_nan(of);
    part<T>(row);
  }
}

FLEETRUN_INLINE void add(double* sums, const float* row, std::int64_t lanes) {
  for (std::int64_t i = 0; i < lanes; ++i) sums[i] += static_cast<double>(row[i]);
}

// The moments of `count` rows to those of `seen` others.
FLEETRUN_INLINE void merge(double* all_mean, double* all_squares, std::int64_t seen, const float* mean,
                           const float* squares, std::int64_t count, std::int64_t lanes) {
  const double share = static_cast<double>(count) / static_cast<double>(seen + count);
  const double weight = static_cast<double>(seen) * share;
  for (std::int64_t i = 0; i < lanes; ++i) {
    const double apart = static_cast<double>(mean[i]) - all_mean[i];
    all_mean[i] += apart * share;
    all_squares[i] += static_cast<double>(squares[i]) + apart * apart * weight;
  }
}

// What is not looked at is null.
template <typename T>
FLEETRUN_INLINE T* ahead(T* elements, std::int64_t by) {
  return elements == nullptr ? nullptr : elements + by;
}

FLEETRUN_INLINE Affine ahead(const Affine& affine, std::int64_t by) {
  return {ahead(affine.mean, by), ahead(affine.factor, by), ahead(affine.shift, by)};
}

// body(first lane, loads, lanes of each) for what is walked over together, all loads of a row before the next row.
// Numbers that are often met are constants, which makes these cases fast.
template <typename T, typename Body>
FLEETRUN_INLINE void walk(std::int64_t lanes, Body&& body) {
  constexpr Constant<1> kOne;
  constexpr Constant<kWidth<T>> kFull;
  constexpr std::int64_t kMost = kMostRegisters / kRegisters<T>;
  const std::int64_t whole = lanes / kFull;
  if (whole == 1)
    body(std::int64_t{0}, kOne, kFull);
  else
    for (std::int64_t i = 0; i < whole; i += kMost) body(i * kFull, std::min(kMost, whole - i), kFull);
  if (whole * kFull < lanes) body(whole * kFull, kOne, lanes - whole * kFull);
}

template <typename T, typename Loads, typename OfEach>
FLEETRUN_INLINE void moments_body(const T* x, const Rows& rows, Loads loads, OfEach lanes, double* all_mean,
                                  double* all_squares) {
  std::fill_n(all_mean, (loads - 1) * kWidth<T> + lanes, 0.0);
  std::fill_n(all_squares, (loads - 1) * kWidth<T> + lanes, 0.0);
  for (std::int64_t first = 0; first < rows.count; first += kPiece) {
    const std::int64_t count = std::min(kPiece, rows.count - first);
    const T* const piece = x + first * rows.stride;
    Registers<T> row[kTogether];
    Factors<T> mean = {}, squares = {};
    std::int64_t r = 0;
    for (; r + kTogether <= count; r += kTogether)
      for (std::int64_t i = 0; i < loads; ++i) {
        for (int k = 0; k < kTogether; ++k)
          load(row[k], piece + (r + k) * rows.stride + i * kWidth<T>, lanes);
        for (int p = 0; p < kRegisters<T>; ++p)
          mean[i][p] += (row[0][p] + row[1][p]) + (row[2][p] + row[3][p]);
      }
    for (; r < count; ++r)
      for (std::int64_t i = 0; i < loads; ++i) {
        load(row[0], piece + r * rows.stride + i * kWidth<T>, lanes);
        for (int p = 0; p < kRegisters<T>; ++p) mean[i][p] += row[0][p];
      }
    for (std::int64_t i = 0; i < loads; ++i)
      for (Lanes& of : mean[i]) of /= static_cast<float>(count);
    for (r = 0; r + kTogether <= count; r += kTogether)
      for (std::int64_t i = 0; i < loads; ++i) {
        for (int k = 0; k < kTogether; ++k) {
          load(row[k], piece + (r + k) * rows.stride + i * kWidth<T>, lanes);
          for (int p = 0; p < kRegisters<T>; ++p) {
            row[k][p] -= mean[i][p];
            row[k][p] *= row[k][p];
          }
        }
        for (int p = 0; p < kRegisters<T>; ++p)
          squares[i][p] += (row[0][p] + row[1][p]) + (row[2][p] + row[3][p]);
      }
    for (; r < count; ++r)
      for (std::int64_t i = 0; i < loads; ++i) {
        load(row[0], piece + r * rows.stride + i * kWidth<T>, lanes);
        for (int p = 0; p < kRegisters<T>; ++p) {
          row[0][p] -= mean[i][p];
          squares[i][p] += row[0][p] * row[0][p];
        }
      }
    for (std::int64_t i = 0; i < loads; ++i) {
      join<T>(mean[i]);
      join<T>(squares[i]);
      merge(all_mean + i * kWidth<T>, all_squares + i * kWidth<T>, first,
            reinterpret_cast<const float*>(&mean[i]), reinterpret_cast<const float*>(&squares[i]), count,
            lanes);
    }
  }
}

enum class Then { nothing, relu, add_relu };

template <Then then, typename T, typename Loads, typename OfEach>
FLEETRUN_INLINE void normalise_body(const T* x, const T* z, T* y, const Rows& rows, Loads loads, OfEach lanes,
                                    const Affine& affine) {
  Factors<T> mean, factor, shift;
  take<T>(mean, affine.mean, loads, lanes);
  take<T>(factor, affine.factor, loads, lanes);
  take<T>(shift, affine.shift, loads, lanes);
  Registers<T> row, added;
  for (std::int64_t r = 0; r < rows.count; ++r)
    for (std::int64_t i = 0; i < loads; ++i) {
      const std::int64_t at = r * rows.stride + i * kWidth<T>;
      load(row, x + at, lanes);
      if constexpr (then == Then::add_relu) load(added, z + at, lanes);
      for (int p = 0; p < kRegisters<T>; ++p) {
        row[p] = (row[p] - mean[i][p]) * factor[i][p] + shift[i][p];
        if constexpr (then == Then::add_relu) row[p] += added[p];
        if constexpr (then != Then::nothing) relu(row[p]);
      }
      store(row, y + at, lanes);
    }
}

// Which elements of dy count: all; those where normalise_relu let x through; those where y is above 0; those of dy + dy_too
// there.
enum class Counted { all, where_normalised, where_y, where_y_of_both };

// What sums are made of, from a lane on; null what is not looked at.
template <typename T>
struct Sources {
  const T *x, *y, *dy, *dy_too;
  T* dz;

  FLEETRUN_INLINE Sources(const MaskedGradients& of, std::int64_t lane)
      : x(ahead(static_cast<const T*>(of.x), lane)),
        y(ahead(static_cast<const T*>(of.y), lane)),
        dy(ahead(static_cast<const T*>(of.dy), lane)),
        dy_too(ahead(static_cast<const T*>(of.dy_too), lane)),
        dz(ahead(static_cast<T*>(of.dz), lane)) {}
};

template <Counted counted, typename T, typename Loads, typename OfEach>
FLEETRUN_INLINE void sums_body(const Sources<T>& of, const Rows& rows, Loads loads, OfEach lanes,
                               const Affine& affine, const GradientSums& all) {
  constexpr bool kMasked = counted == Counted::where_y || counted == Counted::where_y_of_both;
  std::fill_n(all.dy, (loads - 1) * kWidth<T> + lanes, 0.0);
  std::fill_n(all.dy_x, (loads - 1) * kWidth<T> + lanes, 0.0);
  Factors<T> mean, factor, shift;
  take<T>(mean, affine.mean, loads, lanes);
  if constexpr (counted == Counted::where_normalised) {
    take<T>(factor, affine.factor, loads, lanes);
    take<T>(shift, affine.shift, loads, lanes);
  }
  for (std::int64_t first = 0; first < rows.count; first += kPiece) {
    const std::int64_t last = std::min(rows.count, first + kPiece);
    Factors<T> sums = {}, products = {};
    const auto add_rows = [&](std::int64_t r, auto together) __attribute__((always_inline)) {
      for (std::int64_t i = 0; i < loads; ++i) {
        Registers<T> row, gradient, other, output, sum = {}, product = {};
        for (int k = 0; k < together; ++k) {
          const std::int64_t at = (r + k) * rows.stride + i * kWidth<T>;
          load(row, of.x + at, lanes);
          load(gradient, of.dy + at, lanes);
          if constexpr (kMasked) load(output, of.y + at, lanes);
          if constexpr (counted == Counted::where_y_of_both) {
            load(other, of.dy_too + at, lanes);
            for (int p = 0; p < kRegisters<T>; ++p) gradient[p] += other[p];
            round_to(gradient);
          }
          for (int p = 0; p < kRegisters<T>; ++p) {
            row[p] -= mean[i][p];
            if constexpr (counted == Counted::where_normalised)
              keep_where_positive(gradient[p], row[p] * factor[i][p] + shift[i][p]);
            if constexpr (kMasked) keep_where_positive(gradient[p], output[p]);
            sum[p] += gradient[p];
            product[p] += gradient[p] * row[p];
          }
          if constexpr (kMasked) store_exact(gradient, of.dz + at, lanes);
        }
        for (int p = 0; p < kRegisters<T>; ++p) {
          sums[i][p] += sum[p];
          products[i][p] += product[p];
        }
      }
    };
    std::int64_t r = first;
    for (; r + kTogether <= last; r += kTogether) add_rows(r, std::integral_constant<int, kTogether>());
    for (; r < last; ++r) add_rows(r, std::integral_constant<int, 1>());
    for (std::int64_t i = 0; i < loads; ++i) {
      join<T>(sums[i]);
      join<T>(products[i]);
      add(all.dy + i * kWidth<T>, reinterpret_cast<const float*>(&sums[i]), lanes);
      add(all.dy_x + i * kWidth<T>, reinterpret_cast<const float*>(&products[i]), lanes);
    }
  }
}

// With the bias, dy counts where the normalised x is above 0.
template <Counted counted, typename T, typename Loads, typename OfEach>
FLEETRUN_INLINE void input_gradient_body(const T* x, const T* dy, T* dx, const Rows& rows, Loads loads,
                                         OfEach lanes, const InputGradient& of, const float* bias) {
  Factors<T> mean, factor, shift, slope, cut;
  take<T>(mean, of.mean, loads, lanes);
  take<T>(factor, of.factor, loads, lanes);
  take<T>(shift, of.shift, loads, lanes);
  take<T>(slope, of.slope, loads, lanes);
  if constexpr (counted == Counted::where_normalised) take<T>(cut, bias, loads, lanes);
  Registers<T> row, gradient;
  for (std::int64_t r = 0; r < rows.count; ++r)
    for (std::int64_t i = 0; i < loads; ++i) {
      const std::int64_t at = r * rows.stride + i * kWidth<T>;
      load(row, x + at, lanes);
      load(gradient, dy + at, lanes);
      for (int p = 0; p < kRegisters<T>; ++p) {
        row[p] -= mean[i][p];
        if constexpr (counted == Counted::where_normalised)
          keep_where_positive(gradient[p], row[p] * factor[i][p] + cut[i][p]);
        gradient[p] = factor[i][p] * (gradient[p] - shift[i][p] - row[p] * slope[i][p]);
      }
      store(gradient, dx + at, lanes);
    }
}

template <typename T>
FLEETRUN_INLINE void moments_walk(const T* x, const Rows& rows, double* mean, double* squares) {
  walk<T>(
      rows.lanes, [&](std::int64_t lane, auto loads, auto lanes) __attribute__((always_inline)) {
        moments_body(x + lane, rows, loads, lanes, mean + lane, squares + lane);
      });
}

template <Then then, typename T>
FLEETRUN_INLINE void normalise_walk(const T* x, const T* z, T* y, const Rows& rows, const Affine& affine) {
  walk<T>(
      rows.lanes, [&](std::int64_t lane, auto loads, auto lanes) __attribute__((always_inline)) {
        normalise_body<then>(x + lane, ahead(z, lane), y + lane, rows, loads, lanes, ahead(affine, lane));
      });
}

template <Counted counted, typename T>
FLEETRUN_INLINE void sums_walk(const MaskedGradients& from, const Rows& rows, const Affine& affine,
                               const GradientSums& all) {
  walk<T>(
      rows.lanes, [&](std::int64_t lane, auto loads, auto lanes) __attribute__((always_inline)) {
        sums_body<counted>(Sources<T>(from, lane), rows, loads, lanes, ahead(affine, lane),
                           {all.dy + lane, all.dy_x + lane});
      });
}

template <Counted counted, typename T>
FLEETRUN_INLINE void input_gradient_walk(const T* x, const T* dy, T* dx, const Rows& rows,
                                         const InputGradient& gradient, const float* bias) {
  walk<T>(
      rows.lanes, [&](std::int64_t lane, auto loads, auto lanes) __attribute__((always_inline)) {
        input_gradient_body<counted>(
            x + lane, dy + lane, dx + lane, rows, loads, lanes,
            {gradient.mean + lane, gradient.factor + lane, gradient.shift + lane, gradient.slope + lane},
            ahead(bias, lane));
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
FLEETRUN_INLINE void sums_either(const MaskedGradients& from, const Rows& rows, const Affine& affine,
                                 const GradientSums& all) {
  if (rows.is_narrow)
    sums_walk<counted, Bf16>(from, rows, affine, all);
  else
    sums_walk<counted, float>(from, rows, affine, all);
}

FLEETRUN_VECTOR_CLONES void sums_loop(Counted counted, const MaskedGradients& from, const Rows& rows,
                                      const Affine& affine, const GradientSums& all) {
  switch (counted) {
    case Counted::all:
      return sums_either<Counted::all>(from, rows, affine, all);
    case Counted::where_normalised:
      return sums_either<Counted::where_normalised>(from, rows, affine, all);
    case Counted::where_y:
      return sums_either<Counted::where_y>(from, rows, affine, all);
    case Counted::where_y_of_both:
      return sums_either<Counted::where_y_of_both>(from, rows, affine, all);
  }
}

template <Counted counted>
FLEETRUN_INLINE void input_gradient_either(const void* x, const void* dy, void* dx, const Rows& rows,
                                           const InputGradient& gradient, const float* bias) {
  if (rows.is_narrow)
    input_gradient_walk<counted>(halves(x), halves(dy), halves(dx), rows, gradient, bias);
  else
    input_gradient_walk<counted>(floats(x), floats(dy), floats(dx), rows, gradient, bias);
}

FLEETRUN_VECTOR_CLONES void input_gradient_loop(const void* x, const void* dy, void* dx, const Rows& rows,
                                                const InputGradient& gradient, const float* bias) {
  if (bias == nullptr) return input_gradient_either<Counted::all>(x, dy, dx, rows, gradient, bias);
  input_gradient_either<Counted::where_normalised>(x, dy, dx, rows, gradient, bias);
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

void masked_gradient_sums(const MaskedGradients& gradients, const Rows& rows, const float* mean,
                          const GradientSums& sums) {
  sums_loop(gradients.dy_too == nullptr ? Counted::where_y : Counted::where_y_of_both, gradients, rows,
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
