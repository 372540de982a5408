#include "runtime/kernels/cpu/loops/channel_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/number/half.h"
#include "support/vector_levels.h"

namespace fleetrun::runtime::cpu::channel_rows_test {
namespace {

// 131 rows (two whole pieces and a part) of 16 floats, of which `lanes` count, `stride` apart.
struct Image {
  Rows rows;
  std::vector<float> x, dy;

  Image(std::int64_t lanes, std::int64_t stride) : rows{131, stride, lanes}, x(size()), dy(size()) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = std::sin(static_cast<float>(i)) + 3;
      dy[i] = std::cos(static_cast<float>(3 * i));
    }
  }
  std::size_t size() const { return static_cast<std::size_t>(rows.count * rows.stride + kLanes); }
  std::vector<double> of_lanes() const {
    return std::vector<double>(static_cast<std::size_t>(rows.lanes), -1);
  }
  std::size_t at(std::int64_t row, std::int64_t lane) const {
    return static_cast<std::size_t>(row * rows.stride + lane);
  }
};

// Full rows side by side, half ones, a few channels of an image whose channels are last, many of them.
std::vector<Image> images() {
  return {{16, 16}, {8, 8}, {5, 5}, {16, 40}, {1, 3}, {64, 64}, {24, 24}, {40, 43}, {300, 300}};
}

// Read in whole registers.
std::vector<float> factors(float value) { return std::vector<float>(320, value); }
// One of its own for each lane.
std::vector<float> distinct_factors(float value) {
  std::vector<float> made = factors(value);
  for (std::size_t i = 0; i < made.size(); ++i) made[i] += 0.01F * static_cast<float>(i);
  return made;
}

TEST_CASE("moments of rows are mean and squared distance of each lane") {
  for (const Image& image : images()) {
    std::vector<double> means = image.of_lanes(), all_squares = image.of_lanes();
    moments_of(image.x.data(), image.rows, means.data(), all_squares.data());
    for (int lane = 0; lane < image.rows.lanes; ++lane) {
      double mean = 0, squares = 0;
      for (std::int64_t r = 0; r < image.rows.count; ++r) mean += image.x[image.at(r, lane)];
      mean /= static_cast<double>(image.rows.count);
      for (std::int64_t r = 0; r < image.rows.count; ++r)
        squares += std::pow(image.x[image.at(r, lane)] - mean, 2);
      CHECK(means[static_cast<std::size_t>(lane)] == doctest::Approx(mean).epsilon(2e-7));
      CHECK(all_squares[static_cast<std::size_t>(lane)] == doctest::Approx(squares).epsilon(1e-6));
    }
  }
}

TEST_CASE("gradient sums of rows are those of dy and of dy times the distance from the mean") {
  const std::vector<float> mean = factors(2.5F);
  for (const Image& image : images()) {
    std::vector<double> of_dy = image.of_lanes(), of_dy_x = image.of_lanes();
    gradient_sums(image.x.data(), image.dy.data(), image.rows, mean.data(), {of_dy.data(), of_dy_x.data()});
    for (int lane = 0; lane < image.rows.lanes; ++lane) {
      double dy = 0, dy_x = 0;
      for (std::int64_t r = 0; r < image.rows.count; ++r) {
        const std::size_t i = image.at(r, lane);
        dy += image.dy[i];
        dy_x += double{image.dy[i]} * (double{image.x[i]} - 2.5);
      }
      CHECK(of_dy[static_cast<std::size_t>(lane)] == doctest::Approx(dy).epsilon(1e-5).scale(10));
      CHECK(of_dy_x[static_cast<std::size_t>(lane)] == doctest::Approx(dy_x).epsilon(1e-5).scale(10));
    }
  }
}

// One lane at a time, in the order that channel_rows.h promises: four rows, pieces of 64 rows, all in f64.
struct LaneReference {
  const Image& image;
  std::int64_t lane;

  float x(std::int64_t row) const { return image.x[image.at(row, lane)]; }
  float dy(std::int64_t row) const { return image.dy[image.at(row, lane)]; }

  template <typename Of>
  static float sum_of_piece(std::int64_t first, std::int64_t last, const Of& of) {
    float sum = 0;
    std::int64_t r = first;
    for (; r + 4 <= last; r += 4) sum += (of(r) + of(r + 1)) + (of(r + 2) + of(r + 3));
    for (; r < last; ++r) sum += of(r);
    return sum;
  }
  template <typename Of>
  static double one_after_the_other(std::int64_t count, const Of& of) {
    double all = 0;
    for (std::int64_t first = 0; first < count; first += 64) {
      const std::int64_t last = std::min(count, first + 64);
      float piece = 0;
      std::int64_t r = first;
      for (; r + 4 <= last; r += 4) piece += ((of(r) + of(r + 1)) + of(r + 2)) + of(r + 3);
      for (; r < last; ++r) piece += of(r);
      all += static_cast<double>(piece);
    }
    return all;
  }

  std::pair<double, double> moments() const {
    double all_mean = 0, all_squares = 0;
    for (std::int64_t first = 0; first < image.rows.count; first += 64) {
      const std::int64_t last = std::min(image.rows.count, first + 64), count = last - first;
      const float mean =
          sum_of_piece(first, last, [&](std::int64_t r) { return x(r); }) / static_cast<float>(count);
      const float squares =
          sum_of_piece(first, last, [&](std::int64_t r) { return (x(r) - mean) * (x(r) - mean); });
      const double share = static_cast<double>(count) / static_cast<double>(first + count);
      const double apart = static_cast<double>(mean) - all_mean;
      all_mean += apart * share;
      all_squares += static_cast<double>(squares) + apart * apart * (static_cast<double>(first) * share);
    }
    return {all_mean, all_squares};
  }
  std::pair<double, double> gradient_sums(float mean) const {
    return {one_after_the_other(image.rows.count, [&](std::int64_t r) { return dy(r); }),
            one_after_the_other(image.rows.count, [&](std::int64_t r) { return dy(r) * (x(r) - mean); })};
  }
};

TEST_CASE(
    "sums over rows have the bits of plain loops over one lane, at every level of vector instructions") {
  const std::vector<float> mean = distinct_factors(2.5F);
  fleetrun::test::at_every_level([&] {
    for (const Image& image : images()) {
      CAPTURE(image.rows.lanes);
      std::vector<double> first = image.of_lanes(), second = image.of_lanes();
      moments_of(image.x.data(), image.rows, first.data(), second.data());
      for (std::int64_t lane = 0; lane < image.rows.lanes; ++lane) {
        const auto [wanted, wanted_too] = LaneReference{image, lane}.moments();
        CHECK(first[static_cast<std::size_t>(lane)] == wanted);
        CHECK(second[static_cast<std::size_t>(lane)] == wanted_too);
      }
      gradient_sums(image.x.data(), image.dy.data(), image.rows, mean.data(), {first.data(), second.data()});
      for (std::int64_t lane = 0; lane < image.rows.lanes; ++lane) {
        const auto i = static_cast<std::size_t>(lane);
        const auto [wanted, wanted_too] = LaneReference{image, lane}.gradient_sums(mean[i]);
        CHECK(first[i] == wanted);
        CHECK(second[i] == wanted_too);
      }
    }
  });
}

TEST_CASE("normalised rows and their gradients have the bits of plain formulas, at every level") {
  const std::vector<float> mean = distinct_factors(2.5F), factor = distinct_factors(1.7F),
                           shift = distinct_factors(0.3F), slope = distinct_factors(0.2F);
  fleetrun::test::at_every_level([&] {
    for (const Image& image : images()) {
      CAPTURE(image.rows.lanes);
      std::vector<float> y(image.size()), dx(image.size());
      normalise_add_relu(image.x.data(), image.dy.data(), y.data(), image.rows,
                         {mean.data(), factor.data(), shift.data()});
      relu_input_gradient(image.x.data(), image.dy.data(), dx.data(), image.rows,
                          {mean.data(), factor.data(), shift.data(), slope.data()}, shift.data());
      for (std::int64_t r = 0; r < image.rows.count; ++r)
        for (std::int64_t lane = 0; lane < image.rows.lanes; ++lane) {
          const std::size_t i = image.at(r, lane), c = static_cast<std::size_t>(lane);
          const float apart = image.x[i] - mean[c], normal = apart * factor[c] + shift[c];
          CHECK(y[i] == std::max(normal + image.dy[i], 0.0F));
          const float counted = normal > 0 ? image.dy[i] : 0;
          CHECK(dx[i] == factor[c] * (counted - shift[c] - apart * slope[c]));
        }
    }
  });
}

TEST_CASE("what lies between the lanes of two rows is left alone") {
  const std::vector<float> filled = factors(1.0F);
  const float* const ones = filled.data();
  for (const Image& image : images()) {
    std::vector<float> y(image.size(), -7.0F), dx(image.size(), -7.0F);
    normalise(image.x.data(), y.data(), image.rows, {ones, ones, ones});
    input_gradient(image.x.data(), image.dy.data(), dx.data(), image.rows, {ones, ones, ones, ones});
    for (std::int64_t r = 0; r < image.rows.count; ++r)
      for (std::int64_t lane = 0; lane < image.rows.stride; ++lane) {
        const std::size_t i = image.at(r, lane);
        const bool inside = lane < image.rows.lanes;
        CHECK(y[i] == (inside ? image.x[i] - 1 + 1 : -7.0F));
        CHECK(dx[i] == (inside ? image.dy[i] - 1 - (image.x[i] - 1) : -7.0F));
      }
  }
}

// An image in bf16, and the same values as f32.
struct NarrowImage {
  Rows rows, wide_rows;
  std::vector<std::uint16_t> x, dy, y;
  std::vector<float> wide_x, wide_dy, wide_y;

  explicit NarrowImage(const Image& image)
      : rows(image.rows),
        wide_rows(image.rows),
        x(image.size()),
        dy(x),
        y(x),
        wide_x(image.size()),
        wide_dy(wide_x),
        wide_y(wide_x) {
    rows.is_narrow = true;
    for (std::size_t i = 0; i < image.size(); ++i) {
      wide_x[i] = bf16_to_f32(x[i] = f32_to_bf16(image.x[i]));
      wide_dy[i] = bf16_to_f32(dy[i] = f32_to_bf16(image.dy[i]));
      wide_y[i] = bf16_to_f32(y[i] = f32_to_bf16(std::max(0.0F, image.dy[i] - 0.3F)));
    }
  }

  // `found` is `expected` rounded to the nearest, and 0x7fc1 between the lanes.
  void check(const std::vector<std::uint16_t>& found, const std::vector<float>& expected) const {
    for (std::int64_t r = 0; r < rows.count; ++r)
      for (std::int64_t lane = 0; lane < rows.stride; ++lane) {
        const auto i = static_cast<std::size_t>(r * rows.stride + lane);
        CHECK(found[i] == (lane < rows.lanes ? f32_to_bf16(expected[i]) : 0x7fc1));
      }
  }
  std::vector<std::uint16_t> untouched() const { return std::vector<std::uint16_t>(x.size(), 0x7fc1); }
};

TEST_CASE("rows in bf16 are what rows in f32 are, rounded to the nearest") {
  fleetrun::test::at_every_level([] {
    const std::vector<float> mean = distinct_factors(2.5F), factor = distinct_factors(1.7F),
                             shift = distinct_factors(0.3F), slope = distinct_factors(0.2F);
    const Affine affine = {mean.data(), factor.data(), shift.data()};
    const InputGradient gradient = {mean.data(), factor.data(), shift.data(), slope.data()};
    for (const Image& image : images()) {
      CAPTURE(image.rows.lanes);
      const NarrowImage of(image);
      std::vector<float> expected(image.size());
      std::vector<std::uint16_t> found = of.untouched();
      normalise(of.wide_x.data(), expected.data(), of.wide_rows, affine);
      normalise(of.x.data(), found.data(), of.rows, affine);
      of.check(found, expected);
      normalise_relu(of.wide_x.data(), expected.data(), of.wide_rows, affine);
      normalise_relu(of.x.data(), found.data(), of.rows, affine);
      of.check(found, expected);
      normalise_add_relu(of.wide_x.data(), of.wide_dy.data(), expected.data(), of.wide_rows, affine);
      normalise_add_relu(of.x.data(), of.dy.data(), found.data(), of.rows, affine);
      of.check(found, expected);
      input_gradient(of.wide_x.data(), of.wide_dy.data(), expected.data(), of.wide_rows, gradient);
      input_gradient(of.x.data(), of.dy.data(), found.data(), of.rows, gradient);
      of.check(found, expected);
      relu_input_gradient(of.wide_x.data(), of.wide_dy.data(), expected.data(), of.wide_rows, gradient,
                          shift.data());
      relu_input_gradient(of.x.data(), of.dy.data(), found.data(), of.rows, gradient, shift.data());
      of.check(found, expected);
    }
  });
}

TEST_CASE("sums over rows in bf16 are those over rows in f32") {
  fleetrun::test::at_every_level([] {
    const std::vector<float> mean = distinct_factors(2.5F), factor = distinct_factors(1.7F),
                             shift = distinct_factors(0.3F);
    const Affine affine = {mean.data(), factor.data(), shift.data()};
    for (const Image& image : images()) {
      CAPTURE(image.rows.lanes);
      const NarrowImage of(image);
      std::vector<double> expected = image.of_lanes(), expected_too = expected, found = expected,
                          found_too = expected;
      const auto check = [&] {
        CHECK(found == expected);
        CHECK(found_too == expected_too);
      };
      moments_of(of.wide_x.data(), of.wide_rows, expected.data(), expected_too.data());
      moments_of(of.x.data(), of.rows, found.data(), found_too.data());
      check();
      gradient_sums(of.wide_x.data(), of.wide_dy.data(), of.wide_rows, mean.data(),
                    {expected.data(), expected_too.data()});
      gradient_sums(of.x.data(), of.dy.data(), of.rows, mean.data(), {found.data(), found_too.data()});
      check();
      relu_gradient_sums(of.wide_x.data(), of.wide_dy.data(), of.wide_rows, affine,
                         {expected.data(), expected_too.data()});
      relu_gradient_sums(of.x.data(), of.dy.data(), of.rows, affine, {found.data(), found_too.data()});
      check();
      std::vector<float> wide_dz(image.size());
      std::vector<std::uint16_t> dz = of.untouched();
      masked_gradient_sums({of.wide_x.data(), of.wide_y.data(), of.wide_dy.data(), nullptr, wide_dz.data()},
                           of.wide_rows, mean.data(), {expected.data(), expected_too.data()});
      masked_gradient_sums({of.x.data(), of.y.data(), of.dy.data(), nullptr, dz.data()}, of.rows, mean.data(),
                           {found.data(), found_too.data()});
      check();
      of.check(dz, wide_dz);
    }
  });
}

TEST_CASE("gradients of two branches count as their sum in the type of both") {
  fleetrun::test::at_every_level([] {
    const std::vector<float> mean = distinct_factors(2.5F);
    for (const Image& image : images()) {
      CAPTURE(image.rows.lanes);
      const NarrowImage of(image);
      std::vector<float> wide_sum(image.size()), rounded_sum(image.size()), wide_dz(image.size()),
          expected_dz(wide_dz);
      for (std::size_t i = 0; i < image.size(); ++i) {
        wide_sum[i] = of.wide_dy[i] + of.wide_x[i];
        rounded_sum[i] = bf16_to_f32(f32_to_bf16(wide_sum[i]));
      }
      std::vector<double> expected = image.of_lanes(), expected_too = expected, found = expected,
                          found_too = expected;
      const auto expect = [&](const std::vector<float>& sum) {
        masked_gradient_sums({of.wide_x.data(), of.wide_y.data(), sum.data(), nullptr, expected_dz.data()},
                             of.wide_rows, mean.data(), {expected.data(), expected_too.data()});
      };
      const auto check = [&] {
        CHECK(found == expected);
        CHECK(found_too == expected_too);
      };
      expect(wide_sum);
      masked_gradient_sums(
          {of.wide_x.data(), of.wide_y.data(), of.wide_dy.data(), of.wide_x.data(), wide_dz.data()},
          of.wide_rows, mean.data(), {found.data(), found_too.data()});
      check();
      CHECK(wide_dz == expected_dz);
      expect(rounded_sum);
      std::vector<std::uint16_t> dz = of.untouched();
      masked_gradient_sums({of.x.data(), of.y.data(), of.dy.data(), of.x.data(), dz.data()}, of.rows,
                           mean.data(), {found.data(), found_too.data()});
      check();
      of.check(dz, expected_dz);
    }
  });
}

TEST_CASE("what is not a number stays none, whatever its bits, and what is negative becomes 0") {
  fleetrun::test::at_every_level([] {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const auto with_bits = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
    const std::vector<float> special = {nan,
                                        -nan,
                                        kInf,
                                        -kInf,
                                        0.0F,
                                        -0.0F,
                                        1e-40F,
                                        -1e-40F,
                                        3.0F,
                                        -3.0F,
                                        1e38F,
                                        -1e38F,
                                        with_bits(0x7fffffff),
                                        with_bits(0xffff0000),
                                        with_bits(0x7f810000),
                                        0.5F};
    const std::vector<float> zeros = factors(0.0F), ones = factors(1.0F),
                             no_number = factors(with_bits(0xffffffff));
    for (const bool is_narrow : {false, true}) {
      CAPTURE(is_narrow);
      const Rows rows = {.count = 1, .is_narrow = is_narrow};
      std::vector<std::uint16_t> narrow(special.size()), narrow_y(special.size()),
          dy(special.size(), f32_to_bf16(2.0F));
      for (std::size_t i = 0; i < special.size(); ++i) narrow[i] = f32_to_bf16(special[i]);
      std::vector<float> y(special.size()), wide_dy(special.size(), 2.0F);
      const void* const x = is_narrow ? static_cast<const void*>(narrow.data()) : special.data();
      void* const out = is_narrow ? static_cast<void*>(narrow_y.data()) : y.data();
      const auto result = [&](std::size_t i) { return is_narrow ? bf16_to_f32(narrow_y[i]) : y[i]; };
      normalise_relu(x, out, rows, {zeros.data(), ones.data(), zeros.data()});
      for (std::size_t i = 0; i < special.size(); ++i) {
        CAPTURE(special[i]);
        const float wanted = std::max(special[i], 0.0F);
        if (std::isnan(special[i]))
          CHECK(std::isnan(result(i)));
        else
          CHECK(result(i) == (is_narrow ? bf16_to_f32(f32_to_bf16(wanted)) : wanted));
      }
      std::vector<double> sums(special.size()), products(special.size());
      masked_gradient_sums(
          {x, x, is_narrow ? static_cast<const void*>(dy.data()) : wide_dy.data(), nullptr, out}, rows,
          zeros.data(), {sums.data(), products.data()});
      for (std::size_t i = 0; i < special.size(); ++i) {
        CAPTURE(special[i]);
        CHECK(result(i) == (special[i] > 0.0F ? 2.0F : 0.0F));
      }
      normalise(x, out, rows, {zeros.data(), no_number.data(), zeros.data()});
      for (std::size_t i = 0; i < special.size(); ++i) CHECK(std::isnan(result(i)));
    }
  });
}

}  // namespace
}  // namespace fleetrun::runtime::cpu::channel_rows_test
