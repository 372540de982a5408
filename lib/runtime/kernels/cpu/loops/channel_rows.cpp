#include "runtime/kernels/cpu/loops/channel_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/number/vector_clones.h"
#include "runtime/kernels/cpu/loops/lanes.h"

namespace fleetrun::runtime::cpu {
namespace {

// Rows summed in f32: of kLanes elements 4 KiB, which the second look at them finds in the first cache.
constexpr std::int64_t kPiece = 64;
constexpr int kTogether = 4;  // rows that are added up before their sum goes to that of the piece
// Registers that are summed side by side: of 512 bytes or more of a row, which the processor fetches in advance.
constexpr int kMostRegisters = 16;

// Loads that are walked over together, at most: as many as there are if that is a constant.
template <typename T, int width, typename Loads>
constexpr std::int64_t kMostLoads = kMostRegisters / Row<T, width>::kRegisters;
template <typename T, int width, std::int64_t n>
constexpr std::int64_t kMostLoads<T, width, Constant<n>> = n;

// The factors of all of them.
template <typename T, int width, typename Loads>
using Factors = Row<T, width>[kMostLoads<T, width, Loads>];

template <typename T, int width, typename Loads>
FLEETRUN_VECTOR_LOOP void take(Factors<T, width, Loads>& factors, const float* from, Loads loads,
                               std::int64_t lanes) {
  for (std::int64_t i = 0; i < loads; ++i) {
    Row<T, width>& row = factors[i];
    row = {};
    std::memcpy(&row, from + i * width, static_cast<std::size_t>(lanes) * sizeof(float));
    for (auto& of : row.of) shorten_nan(of);
    part(row);
  }
}

FLEETRUN_VECTOR_LOOP void add(double* sums, const float* row, std::int64_t lanes) {
  for (std::int64_t i = 0; i < lanes; ++i) sums[i] += static_cast<double>(row[i]);
}

// The moments of `count` rows to those of `seen` others.
FLEETRUN_VECTOR_LOOP void merge(double* all_mean, double* all_squares, std::int64_t seen, const float* mean,
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
FLEETRUN_VECTOR_LOOP T* ahead(T* elements, std::int64_t by) {
  return elements == nullptr ? nullptr : elements + by;
}

FLEETRUN_VECTOR_LOOP Affine ahead(const Affine& affine, std::int64_t by) {
  return {ahead(affine.mean, by), ahead(affine.factor, by), ahead(affine.shift, by)};
}

// Bodies take Rows by value: stores of bf16 might change what a reference is to, as far as the compiler knows.

// body(first lane, Constant<width>, loads, lanes of each) for what is walked over together, all loads of a row before the next
// row. Numbers that are often met are constants, which makes these cases fast.
template <typename T, typename Body>
FLEETRUN_VECTOR_LOOP void walk(std::int64_t lanes, Body&& body) {
  constexpr Constant<1> kOne;
  constexpr Constant<kWidest<T>> kFull;
  constexpr std::int64_t kMost = kMostLoads<T, kFull, std::int64_t>;
  const std::int64_t whole = lanes / kFull;
  if (whole == 1)
    body(std::int64_t{0}, kFull, kOne, kFull);
  else
    for (std::int64_t i = 0; i < whole; i += kMost) body(i * kFull, kFull, std::min(kMost, whole - i), kFull);
  std::int64_t done = whole * kFull;
  each_narrower_load<T>(
      done, lanes, [&](std::int64_t first, auto width) __attribute__((always_inline)) {
        body(first, width, kOne, width);
      });
  if (done == lanes) return;
  meet_remainder();
  body(done, Constant<kFewestLanes>(), kOne, lanes - done);
}

template <int width, typename T, typename Loads, typename OfEach>
FLEETRUN_VECTOR_LOOP void moments_body(const T* x, Rows rows, Loads loads, OfEach lanes, double* all_mean,
                                       double* all_squares) {
  std::fill_n(all_mean, (loads - 1) * width + lanes, 0.0);
  std::fill_n(all_squares, (loads - 1) * width + lanes, 0.0);
  for (std::int64_t first = 0; first < rows.count; first += kPiece) {
    const std::int64_t count = std::min(kPiece, rows.count - first);
    const T* const piece = x + first * rows.stride;
    Row<T, width> row[kTogether];
    Factors<T, width, Loads> mean = {}, squares = {};
    std::int64_t r = 0;
    for (; r + kTogether <= count; r += kTogether)
      for (std::int64_t i = 0; i < loads; ++i) {
        repeat<kTogether>([&](auto k) __attribute__((always_inline)) {
          load(row[k], piece + (r + k) * rows.stride + i * width, lanes);
        });
        repeat<Row<T, width>::kRegisters>([&](auto p) __attribute__((always_inline)) {
          mean[i].of[p] += (row[0].of[p] + row[1].of[p]) + (row[2].of[p] + row[3].of[p]);
        });
      }
    for (; r < count; ++r)
      for (std::int64_t i = 0; i < loads; ++i) {
        load(row[0], piece + r * rows.stride + i * width, lanes);
        repeat<Row<T, width>::kRegisters>([&](auto p) __attribute__((always_inline)) {
          mean[i].of[p] += row[0].of[p];
        });
      }
    for (std::int64_t i = 0; i < loads; ++i)
      for (auto& of : mean[i].of) of /= static_cast<float>(count);
    for (r = 0; r + kTogether <= count; r += kTogether)
      for (std::int64_t i = 0; i < loads; ++i) {
        repeat<kTogether>([&](auto k) __attribute__((always_inline)) {
          const T* const elements = piece + (r + k) * rows.stride + i * width;
          __builtin_prefetch(elements +
                             kPiece * rows.stride);  // the next piece, while this one is in the cache
          load(row[k], elements, lanes);
          repeat<Row<T, width>::kRegisters>([&](auto p) __attribute__((always_inline)) {
            row[k].of[p] -= mean[i].of[p];
            row[k].of[p] *= row[k].of[p];
          });
        });
        repeat<Row<T, width>::kRegisters>([&](auto p) __attribute__((always_inline)) {
          squares[i].of[p] += (row[0].of[p] + row[1].of[p]) + (row[2].of[p] + row[3].of[p]);
        });
      }
    for (; r < count; ++r)
      for (std::int64_t i = 0; i < loads; ++i) {
        load(row[0], piece + r * rows.stride + i * width, lanes);
        repeat<Row<T, width>::kRegisters>([&](auto p) __attribute__((always_inline)) {
          row[0].of[p] -= mean[i].of[p];
          squares[i].of[p] += row[0].of[p] * row[0].of[p];
        });
      }
    for (std::int64_t i = 0; i < loads; ++i) {
      join(mean[i]);
      join(squares[i]);
      merge(all_mean + i * width, all_squares + i * width, first, reinterpret_cast<const float*>(&mean[i]),
            reinterpret_cast<const float*>(&squares[i]), count, lanes);
    }
  }
}

enum class Then { nothing, relu, add_relu };

template <Then then, int width, typename T, typename Loads, typename OfEach>
FLEETRUN_VECTOR_LOOP void normalise_body(const T* x, const T* z, T* y, Rows rows, Loads loads, OfEach lanes,
                                         const Affine& affine) {
  Factors<T, width, Loads> mean, factor, shift;
  take<T, width>(mean, affine.mean, loads, lanes);
  take<T, width>(factor, affine.factor, loads, lanes);
  take<T, width>(shift, affine.shift, loads, lanes);
  Row<T, width> row, added;
  for (std::int64_t r = 0; r < rows.count; ++r)
    for (std::int64_t i = 0; i < loads; ++i) {
      const std::int64_t at = r * rows.stride + i * width;
      load(row, x + at, lanes);
      if constexpr (then == Then::add_relu) load(added, z + at, lanes);
      repeat<Row<T, width>::kRegisters>([&](auto p) __attribute__((always_inline)) {
        row.of[p] = (row.of[p] - mean[i].of[p]) * factor[i].of[p] + shift[i].of[p];
        if constexpr (then == Then::add_relu) row.of[p] += added.of[p];
        if constexpr (then != Then::nothing) relu(row.of[p]);
      });
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

  FLEETRUN_VECTOR_LOOP Sources(const MaskedGradients& of, std::int64_t lane)
      : x(ahead(static_cast<const T*>(of.x), lane)),
        y(ahead(static_cast<const T*>(of.y), lane)),
        dy(ahead(static_cast<const T*>(of.dy), lane)),
        dy_too(ahead(static_cast<const T*>(of.dy_too), lane)),
        dz(ahead(static_cast<T*>(of.dz), lane)) {}
};

template <Counted counted, int width, typename T, typename Loads, typename OfEach>
FLEETRUN_VECTOR_LOOP void sums_body(const Sources<T>& of, Rows rows, Loads loads, OfEach lanes,
                                    const Affine& affine, const GradientSums& all) {
  constexpr bool kMasked = counted == Counted::where_y || counted == Counted::where_y_of_both;
  std::fill_n(all.dy, (loads - 1) * width + lanes, 0.0);
  std::fill_n(all.dy_x, (loads - 1) * width + lanes, 0.0);
  Factors<T, width, Loads> mean, factor, shift;
  take<T, width>(mean, affine.mean, loads, lanes);
  if constexpr (counted == Counted::where_normalised) {
    take<T, width>(factor, affine.factor, loads, lanes);
    take<T, width>(shift, affine.shift, loads, lanes);
  }
  for (std::int64_t first = 0; first < rows.count; first += kPiece) {
    const std::int64_t last = std::min(rows.count, first + kPiece);
    Factors<T, width, Loads> sums = {}, products = {};
    const auto add_row = [&](std::int64_t at, std::int64_t i, Row<T, width> & sum, Row<T, width> & product)
        __attribute__((always_inline)) {
      Row<T, width> row, gradient, other, output;
      load(row, of.x + at, lanes);
      load(gradient, of.dy + at, lanes);
      if constexpr (kMasked) load(output, of.y + at, lanes);
      if constexpr (counted == Counted::where_y_of_both) {
        load(other, of.dy_too + at, lanes);
        repeat<Row<T, width>::kRegisters>([&](auto p) __attribute__((always_inline)) {
          gradient.of[p] += other.of[p];
        });
        round_to(gradient);
      }
      repeat<Row<T, width>::kRegisters>([&](auto p) __attribute__((always_inline)) {
        row.of[p] -= mean[i].of[p];
        if constexpr (counted == Counted::where_normalised)
          keep_where_positive(gradient.of[p], row.of[p] * factor[i].of[p] + shift[i].of[p]);
        if constexpr (kMasked) keep_where_positive(gradient.of[p], output.of[p]);
        sum.of[p] += gradient.of[p];
        product.of[p] += gradient.of[p] * row.of[p];
      });
      if constexpr (kMasked) store_exact(gradient, of.dz + at, lanes);
    };
    const auto add_rows = [&]<std::int64_t... k>(std::int64_t r, std::integer_sequence<std::int64_t, k...>)
        __attribute__((always_inline)) {
      for (std::int64_t i = 0; i < loads; ++i) {
        Row<T, width> sum = {}, product = {};
        (add_row((r + k) * rows.stride + i * width, i, sum, product), ...);
        repeat<Row<T, width>::kRegisters>([&](auto p) __attribute__((always_inline)) {
          sums[i].of[p] += sum.of[p];
          products[i].of[p] += product.of[p];
        });
      }
    };
    std::int64_t r = first;
    for (; r + kTogether <= last; r += kTogether)
      add_rows(r, std::make_integer_sequence<std::int64_t, kTogether>());
    for (; r < last; ++r) add_rows(r, std::integer_sequence<std::int64_t, 0>());
    for (std::int64_t i = 0; i < loads; ++i) {
      join(sums[i]);
      join(products[i]);
      add(all.dy + i * width, reinterpret_cast<const float*>(&sums[i]), lanes);
      add(all.dy_x + i * width, reinterpret_cast<const float*>(&products[i]), lanes);
    }
  }
}

// With the bias, dy counts where the normalised x is above 0.
template <Counted counted, int width, typename T, typename Loads, typename OfEach>
FLEETRUN_VECTOR_LOOP void input_gradient_body(const T* x, const T* dy, T* dx, Rows rows, Loads loads,
                                              OfEach lanes, const InputGradient& of, const float* bias) {
  Factors<T, width, Loads> mean, factor, shift, slope, cut;
  take<T, width>(mean, of.mean, loads, lanes);
  take<T, width>(factor, of.factor, loads, lanes);
  take<T, width>(shift, of.shift, loads, lanes);
  take<T, width>(slope, of.slope, loads, lanes);
  if constexpr (counted == Counted::where_normalised) take<T, width>(cut, bias, loads, lanes);
  Row<T, width> row, gradient;
  for (std::int64_t r = 0; r < rows.count; ++r)
    for (std::int64_t i = 0; i < loads; ++i) {
      const std::int64_t at = r * rows.stride + i * width;
      load(row, x + at, lanes);
      load(gradient, dy + at, lanes);
      repeat<Row<T, width>::kRegisters>([&](auto p) __attribute__((always_inline)) {
        row.of[p] -= mean[i].of[p];
        if constexpr (counted == Counted::where_normalised)
          keep_where_positive(gradient.of[p], row.of[p] * factor[i].of[p] + cut[i].of[p]);
        gradient.of[p] = factor[i].of[p] * (gradient.of[p] - shift[i].of[p] - row.of[p] * slope[i].of[p]);
      });
      store(gradient, dx + at, lanes);
    }
}

// What the clones are made of: each loop over rows of one type.
template <typename T>
FLEETRUN_VECTOR_LOOP void moments_loop(const void* x, const Rows& rows, double* mean, double* squares) {
  walk<T>(
      rows.lanes, [&](std::int64_t lane, auto width, auto loads, auto lanes) __attribute__((always_inline)) {
        moments_body<width>(static_cast<const T*>(x) + lane, rows, loads, lanes, mean + lane, squares + lane);
      });
}

template <typename T, Then then>
FLEETRUN_VECTOR_LOOP void normalise_loop(const void* x, const void* z, void* y, const Rows& rows,
                                         const Affine& affine) {
  walk<T>(
      rows.lanes, [&](std::int64_t lane, auto width, auto loads, auto lanes) __attribute__((always_inline)) {
        normalise_body<then, width>(static_cast<const T*>(x) + lane, ahead(static_cast<const T*>(z), lane),
                                    static_cast<T*>(y) + lane, rows, loads, lanes, ahead(affine, lane));
      });
}

template <typename T, Counted counted>
FLEETRUN_VECTOR_LOOP void sums_loop(const MaskedGradients& from, const Rows& rows, const Affine& affine,
                                    const GradientSums& all) {
  walk<T>(
      rows.lanes, [&](std::int64_t lane, auto width, auto loads, auto lanes) __attribute__((always_inline)) {
        sums_body<counted, width>(Sources<T>(from, lane), rows, loads, lanes, ahead(affine, lane),
                                  {all.dy + lane, all.dy_x + lane});
      });
}

template <typename T, Counted counted>
FLEETRUN_VECTOR_LOOP void input_gradient_loop(const void* x, const void* dy, void* dx, const Rows& rows,
                                              const InputGradient& gradient, const float* bias) {
  walk<T>(
      rows.lanes, [&](std::int64_t lane, auto width, auto loads, auto lanes) __attribute__((always_inline)) {
        input_gradient_body<counted, width>(
            static_cast<const T*>(x) + lane, static_cast<const T*>(dy) + lane, static_cast<T*>(dx) + lane,
            rows, loads, lanes,
            {gradient.mean + lane, gradient.factor + lane, gradient.shift + lane, gradient.slope + lane},
            ahead(bias, lane));
      });
}

template <Then then>
void normalise_then(const void* x, const void* z, void* y, const Rows& rows, const Affine& affine) {
  const auto loop =
      rows.is_narrow ? vector_clones<normalise_loop<Bf16, then>> : vector_clones<normalise_loop<float, then>>;
  loop(x, z, y, rows, affine);
}

template <Counted counted>
void sums_of(const MaskedGradients& from, const Rows& rows, const Affine& affine, const GradientSums& sums) {
  const auto loop =
      rows.is_narrow ? vector_clones<sums_loop<Bf16, counted>> : vector_clones<sums_loop<float, counted>>;
  loop(from, rows, affine, sums);
}

template <Counted counted>
void input_gradient_of(const void* x, const void* dy, void* dx, const Rows& rows,
                       const InputGradient& gradient, const float* bias) {
  const auto loop = rows.is_narrow ? vector_clones<input_gradient_loop<Bf16, counted>>
                                   : vector_clones<input_gradient_loop<float, counted>>;
  loop(x, dy, dx, rows, gradient, bias);
}

}  // namespace

void moments_of(const void* x, const Rows& rows, double* mean, double* squares) {
  const auto loop = rows.is_narrow ? vector_clones<moments_loop<Bf16>> : vector_clones<moments_loop<float>>;
  loop(x, rows, mean, squares);
}

void normalise(const void* x, void* y, const Rows& rows, const Affine& affine) {
  normalise_then<Then::nothing>(x, nullptr, y, rows, affine);
}

void normalise_relu(const void* x, void* y, const Rows& rows, const Affine& affine) {
  normalise_then<Then::relu>(x, nullptr, y, rows, affine);
}

void normalise_add_relu(const void* x, const void* z, void* y, const Rows& rows, const Affine& affine) {
  normalise_then<Then::add_relu>(x, z, y, rows, affine);
}

void gradient_sums(const void* x, const void* dy, const Rows& rows, const float* mean,
                   const GradientSums& sums) {
  sums_of<Counted::all>({.x = x, .dy = dy}, rows, {.mean = mean, .factor = nullptr, .shift = nullptr}, sums);
}

void relu_gradient_sums(const void* x, const void* dy, const Rows& rows, const Affine& affine,
                        const GradientSums& sums) {
  sums_of<Counted::where_normalised>({.x = x, .dy = dy}, rows, affine, sums);
}

void masked_gradient_sums(const MaskedGradients& gradients, const Rows& rows, const float* mean,
                          const GradientSums& sums) {
  const Affine affine = {.mean = mean, .factor = nullptr, .shift = nullptr};
  if (gradients.dy_too == nullptr) return sums_of<Counted::where_y>(gradients, rows, affine, sums);
  sums_of<Counted::where_y_of_both>(gradients, rows, affine, sums);
}

void input_gradient(const void* x, const void* dy, void* dx, const Rows& rows,
                    const InputGradient& gradient) {
  input_gradient_of<Counted::all>(x, dy, dx, rows, gradient, nullptr);
}

void relu_input_gradient(const void* x, const void* dy, void* dx, const Rows& rows,
                         const InputGradient& gradient, const float* bias) {
  input_gradient_of<Counted::where_normalised>(x, dy, dx, rows, gradient, bias);
}

}  // namespace fleetrun::runtime::cpu
