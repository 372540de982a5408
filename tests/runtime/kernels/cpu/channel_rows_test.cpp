#include "runtime/kernels/cpu/channel_rows.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/half.h"

namespace fleetrun::runtime::cpu {
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

TEST_CASE("rows in bf16 are what rows in f32 are, rounded to the nearest") {
  const std::vector<float> mean = factors(2.5F), factor = factors(1.7F), shift = factors(0.3F);
  for (const Image& image : images()) {
    std::vector<std::uint16_t> narrow(image.size()), found(image.size(), 0x7fc1);
    std::vector<float> wide(image.size()), expected(image.size());
    for (std::size_t i = 0; i < image.size(); ++i) wide[i] = bf16_to_f32(narrow[i] = f32_to_bf16(image.x[i]));
    wide[1] = std::numeric_limits<float>::quiet_NaN();
    narrow[1] = f32_to_bf16(wide[1]);
    const Affine affine = {mean.data(), factor.data(), shift.data()};
    normalise(wide.data(), expected.data(), image.rows, affine);
    Rows rows = image.rows;
    rows.is_narrow = true;
    normalise(narrow.data(), found.data(), rows, affine);
    for (std::int64_t r = 0; r < rows.count; ++r)
      for (std::int64_t lane = 0; lane < rows.stride; ++lane) {
        const std::size_t i = image.at(r, lane);
        CHECK(found[i] == (lane < rows.lanes ? f32_to_bf16(expected[i]) : 0x7fc1));
      }
  }
}

}  // namespace
}  // namespace fleetrun::runtime::cpu
