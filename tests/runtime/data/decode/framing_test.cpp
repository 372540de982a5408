#include "runtime/data/decode/framing.h"

#include <doctest/doctest.h>

#include <cmath>

namespace fleetrun::runtime::framing_test {
namespace {

constexpr ImageShape kShape = {3, 224, 224};

Framing framing(job::Augment augment, std::int32_t sample = 0, int epoch = 0) {
  return {.augment = augment, .seed = 5, .epoch = epoch, .sample = sample};
}

TEST_CASE("without a region of its own a sample shows everything") {
  CHECK(region_of(framing(job::Augment::none), 500, 375, kShape) == Region{0, 0, 500, 375});
  CHECK(region_of(framing(job::Augment::crop_flip), 500, 375, kShape) == Region{0, 0, 500, 375});
}

TEST_CASE("resize_crop shows the middle 224 of a short side of 256, and the same share for other sizes") {
  CHECK(region_of(framing(job::Augment::resize_crop), 512, 256, kShape) == Region{144, 16, 224, 224});
  CHECK(region_of(framing(job::Augment::resize_crop), 512, 1024, kShape) == Region{32, 288, 448, 448});
  CHECK(region_of(framing(job::Augment::resize_crop), 146, 73, {3, 64, 64}) == Region{41, 4, 64, 64});
  CHECK(region_of(framing(job::Augment::resize_crop), 366, 366, {3, 320, 320}) == Region{23, 23, 320, 320});
}

TEST_CASE(
    "random regions lie inside, are as large and as flat as promised, and depend on the sample and the epoch") {
  double least = 1, most = 0;
  for (std::int32_t sample = 0; sample < 2000; ++sample) {
    const Region region = region_of(framing(job::Augment::random_resized_crop, sample), 500, 375, kShape);
    CHECK(region.left >= 0);
    CHECK(region.top >= 0);
    CHECK(region.left + region.width <= 500);
    CHECK(region.top + region.height <= 375);
    const double aspect = region.width / region.height, area = region.width * region.height / (500 * 375);
    CHECK(aspect > 0.74);
    CHECK(aspect < 1.35);
    least = std::min(least, area);
    most = std::max(most, area);
  }
  CHECK(least == doctest::Approx(0.08).epsilon(0.05));
  CHECK(most > 0.9);
  const auto of = [](std::int32_t sample, int epoch) {
    return region_of(framing(job::Augment::random_resized_crop, sample, epoch), 500, 375, kShape);
  };
  CHECK(of(1, 0) == of(1, 0));
  CHECK_FALSE(of(1, 0) == of(2, 0));
  CHECK_FALSE(of(1, 0) == of(1, 1));
}

TEST_CASE("an image in which no random region fits shows its middle") {
  CHECK(region_of(framing(job::Augment::random_resized_crop), 3000, 10, kShape) == Region{1493, 0, 13, 10});
  const Region narrow = region_of(framing(job::Augment::random_resized_crop), 1, 1000, kShape);
  CHECK(narrow.width == 1);
  CHECK(narrow.height == 1);
}

TEST_CASE("a decoder may make the image smaller as long as the region keeps the pixels of the shape") {
  const Wanted all = {framing(job::Augment::none), kShape};
  CHECK(reduction_of(all, 447, 2000) == 1);
  CHECK(reduction_of(all, 448, 448) == 2);
  CHECK(reduction_of(all, 4000, 900) == 4);
  CHECK(reduction_of(all, 40000, 40000) == 8);
  CHECK(reduction_of(all, 10, 10) == 1);
}

TEST_CASE("without a place, the random numbers are those of seed, epoch and sample") {
  const Framing framing = {.seed = 1, .epoch = 2, .sample = 3};
  CHECK(random_of(framing, RandomUse::region).next() == SampleRandom(RandomUse::region, {1, 2, 3}).next());
  Framing placed = framing;
  placed.place = 0;
  CHECK(random_of(placed, RandomUse::region).next() != random_of(framing, RandomUse::region).next());
}

}  // namespace
}  // namespace fleetrun::runtime::framing_test
