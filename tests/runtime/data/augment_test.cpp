#include "runtime/data/augment.h"

#include <doctest/doctest.h>

#include <set>

#include "runtime/data/expect_error.h"

namespace fleetrun::runtime::augment_test {
namespace {

std::vector<float> planes_of(const std::vector<std::uint8_t>& pixels, const ImageShape& shape,
                             const View& view, const Normalisation& normalisation) {
  std::vector<std::uint8_t> row;
  std::vector<float> planes(shape.elements(), -99.0F);
  write_planes(pixels.data(), shape, view, normalisation, row, planes.data());
  return planes;
}

Normalisation plain(int channels) {
  const auto count = static_cast<std::size_t>(channels);
  return make_normalisation(std::vector<double>(count, 0.0), std::vector<double>(count, 1.0), channels);
}

using Floats = std::vector<float>;

TEST_CASE("a view depends on seed, epoch and sample, and reaches every shift and both sides") {
  const auto view = [](std::int64_t seed, int epoch, int sample) {
    return plan_view({.augment = job::Augment::crop_flip, .seed = seed, .epoch = epoch, .sample = sample});
  };
  CHECK(view(1, 2, 3) == view(1, 2, 3));
  std::set<int> tops, lefts, flips;
  int same_epoch = 0, same_seed = 0;
  for (int sample = 0; sample < 400; ++sample) {
    const View found = view(1, 0, sample);
    tops.insert(found.top);
    lefts.insert(found.left);
    flips.insert(found.flip);
    if (found == view(1, 1, sample)) ++same_epoch;
    if (found == view(2, 0, sample)) ++same_seed;
  }
  CHECK(tops == std::set<int>{-4, -3, -2, -1, 0, 1, 2, 3, 4});
  CHECK(lefts == tops);
  CHECK(flips == std::set<int>{0, 1});
  CHECK(same_epoch < 20);  // of 400; 1 in 162 by chance
  CHECK(same_seed < 20);
}

TEST_CASE("no augmentation is the image itself, and so is one that only chooses the region") {
  CHECK(plan_view({.augment = job::Augment::none, .sample = 3}) == View{});
  CHECK(plan_view({.augment = job::Augment::resize_crop, .sample = 3}) == View{});
}

TEST_CASE("a random region is mirrored half of the time and not moved") {
  int flips = 0;
  for (std::int32_t sample = 0; sample < 1000; ++sample) {
    const View view = plan_view({.augment = job::Augment::random_resized_crop, .sample = sample});
    CHECK(view.top == 0);
    CHECK(view.left == 0);
    flips += view.flip ? 1 : 0;
  }
  CHECK(flips > 430);
  CHECK(flips < 570);
}

TEST_CASE("bytes become floats") {
  CHECK(planes_of({1, 2, 3, 4, 5, 6}, {3, 1, 2}, {}, plain(3)) == Floats{1, 2, 3, 4, 5, 6});
}

TEST_CASE("each channel is normalised by its own mean and std") {
  const Normalisation normalisation = make_normalisation({1, 2, 3}, {2, 4, 0.5}, 3);
  CHECK(planes_of({5, 6, 7}, {3, 1, 1}, {}, normalisation) == Floats{2, 1, 8});
}

TEST_CASE("without mean and std pixels lie between 0 and 1") {
  const Floats planes = planes_of({0, 255}, {1, 1, 2}, {}, make_normalisation({}, {}, 1));
  CHECK(planes[0] == 0);
  CHECK(planes[1] == doctest::Approx(1));
}

TEST_CASE("a shifted view is black outside the image, a flipped one mirrored") {
  const std::vector<std::uint8_t> pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const ImageShape shape = {1, 3, 3};
  CHECK(planes_of(pixels, shape, {1, 1, false}, plain(1)) == Floats{5, 6, 0, 8, 9, 0, 0, 0, 0});
  CHECK(planes_of(pixels, shape, {-1, -2, false}, plain(1)) == Floats{0, 0, 0, 0, 0, 1, 0, 0, 4});
  CHECK(planes_of(pixels, shape, {1, 1, true}, plain(1)) == Floats{0, 6, 5, 0, 9, 8, 0, 0, 0});
  CHECK(planes_of(pixels, shape, {0, 4, true}, plain(1)) == Floats(9, 0.0F));
  CHECK(planes_of(pixels, shape, {-4, -4, false}, plain(1)) == Floats(9, 0.0F));
  const Normalisation shifted = make_normalisation({10}, {1}, 1);
  CHECK(planes_of(pixels, shape, {0, 4, false}, shifted) == Floats(9, -10.0F));
}

TEST_CASE("a mirrored pixel keeps its channels") {
  CHECK(planes_of({1, 2, 3, 4, 5, 6}, {3, 1, 2}, {0, 0, true}, plain(3)) == Floats{2, 1, 4, 3, 6, 5});
}

TEST_CASE("mean and std must fit the channels") {
  check_error(ErrorKind::config, "mean of a data set has 3 numbers, its images have 1 channels", [] {
    make_normalisation({1, 2, 3}, {}, 1);
  });
  check_error(ErrorKind::config, "std of a data set is 0, must be above 0",
              [] { make_normalisation({}, {0}, 1); });
}

}  // namespace
}  // namespace fleetrun::runtime::augment_test
