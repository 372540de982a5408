#include "runtime/kernels/cpu/channel_rows.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace fleetrun::runtime::cpu {
namespace {

// 131 rows (two whole pieces and a part) of 16 floats, of which `lanes` count, `stride` apart.
struct Image {
  Rows rows;
  std::vector<float> x, dy;

  Image(int lanes, std::int64_t stride) : rows{131, stride, lanes}, x(size()), dy(size()) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = std::sin(static_cast<float>(i)) + 3;
      dy[i] = std::cos(static_cast<float>(3 * i));
    }
  }
  std::size_t size() const { return static_cast<std::size_t>(rows.count * rows.stride + kLanes); }
  std::size_t at(std::int64_t row, int lane) const {
    return static_cast<std::size_t>(row * rows.stride + lane);
  }
};

// Full rows side by side, half ones, a few channels of an image whose channels are last.
std::vector<Image> images() { return {{16, 16}, {8, 8}, {5, 5}, {16, 40}, {1, 3}}; }

TEST_CASE("moments of rows are mean and squared distance of each lane") {
  for (const Image& image : images()) {
    const Moments moments = moments_of(image.x.data(), image.rows);
    for (int lane = 0; lane < image.rows.lanes; ++lane) {
      double mean = 0, squares = 0;
      for (std::int64_t r = 0; r < image.rows.count; ++r) mean += image.x[image.at(r, lane)];
      mean /= static_cast<double>(image.rows.count);
      for (std::int64_t r = 0; r < image.rows.count; ++r)
        squares += std::pow(image.x[image.at(r, lane)] - mean, 2);
      CHECK(moments.mean[static_cast<std::size_t>(lane)] == doctest::Approx(mean).epsilon(1e-7));
      CHECK(moments.squares[static_cast<std::size_t>(lane)] == doctest::Approx(squares).epsilon(1e-6));
    }
  }
}

TEST_CASE("gradient sums of rows are those of dy and of dy times the distance from the mean") {
  LaneFactors mean;
  mean.fill(2.5F);
  for (const Image& image : images()) {
    const GradientSums sums = gradient_sums(image.x.data(), image.dy.data(), image.rows, mean);
    for (int lane = 0; lane < image.rows.lanes; ++lane) {
      double dy = 0, dy_x = 0;
      for (std::int64_t r = 0; r < image.rows.count; ++r) {
        const std::size_t i = image.at(r, lane);
        dy += image.dy[i];
        dy_x += double{image.dy[i]} * (double{image.x[i]} - 2.5);
      }
      CHECK(sums.dy[static_cast<std::size_t>(lane)] == doctest::Approx(dy).epsilon(1e-5).scale(10));
      CHECK(sums.dy_x[static_cast<std::size_t>(lane)] == doctest::Approx(dy_x).epsilon(1e-5).scale(10));
    }
  }
}

TEST_CASE("what lies between the lanes of two rows is left alone") {
  LaneFactors ones;
  ones.fill(1.0F);
  for (const Image& image : images()) {
    std::vector<float> y(image.size(), -7.0F), dx(image.size(), -7.0F);
    normalise(image.x.data(), y.data(), image.rows, {ones, ones, ones});
    input_gradient(image.x.data(), image.dy.data(), dx.data(), image.rows, {ones, ones, ones, ones});
    for (std::int64_t r = 0; r < image.rows.count; ++r)
      for (int lane = 0; lane < image.rows.stride; ++lane) {
        const std::size_t i = image.at(r, lane);
        const bool inside = lane < image.rows.lanes;
        CHECK(y[i] == (inside ? image.x[i] - 1 + 1 : -7.0F));
        CHECK(dx[i] == (inside ? image.dy[i] - 1 - (image.x[i] - 1) : -7.0F));
      }
  }
}

}  // namespace
}  // namespace fleetrun::runtime::cpu
