#include "runtime/data/decode/framing.h"

#include <algorithm>
#include <cmath>

namespace fleetrun::runtime {
namespace {

constexpr double kShortSideOfCrop =
    256.0 / 224;                     // of resize_crop: torchvision resizes to 256 pixels, and shows 224
constexpr double kLeastArea = 0.08;  // of random_resized_crop
constexpr double kLeastAspect = 3.0 / 4, kMostAspect = 4.0 / 3;  // width to height
constexpr int kTries = 10;

Region centred(double width, double height, int of_width, int of_height) {
  return {std::floor((of_width - width) / 2), std::floor((of_height - height) / 2), width, height};
}

// The largest part in the middle whose aspect ratio is allowed.
Region allowed_middle(int width, int height) {
  const double aspect = static_cast<double>(width) / height;
  if (aspect < kLeastAspect) return centred(width, std::round(width / kLeastAspect), width, height);
  if (aspect > kMostAspect) return centred(std::round(height * kMostAspect), height, width, height);
  return centred(width, height, width, height);
}

Region random_region(const Framing& framing, int width, int height) {
  SampleRandom random = random_of(framing, RandomUse::region);
  const auto uniform = [&](double low, double high) { return low + (high - low) * random.unit(); };
  for (int i = 0; i < kTries; ++i) {
    const double area = uniform(kLeastArea, 1) * width * height;
    const double aspect = std::exp(uniform(std::log(kLeastAspect), std::log(kMostAspect)));
    const double wide = std::round(std::sqrt(area * aspect)), high = std::round(std::sqrt(area / aspect));
    if (wide < 1 || high < 1 || wide > width || high > height) continue;
    const auto room = [](int side, double part) { return static_cast<std::uint32_t>(side - part) + 1; };
    const double top = random.below(room(height, high)), left = random.below(room(width, wide));
    return {left, top, wide, high};
  }
  return allowed_middle(width, height);
}

}  // namespace

SampleRandom random_of(const Framing& framing, RandomUse use) {
  if (!framing.place) return SampleRandom(use, {framing.seed, framing.epoch, framing.sample});
  return SampleRandom(use, {framing.seed, framing.epoch, framing.sample, *framing.place});
}

Region region_of(const Framing& framing, int width, int height, const ImageShape& shape) {
  switch (framing.augment) {
    case job::Augment::random_resized_crop:
      return random_region(framing, width, height);
    case job::Augment::resize_crop: {
      const double short_side = std::round(std::max(shape.width, shape.height) * kShortSideOfCrop);
      const double scale = std::min(width, height) / short_side;
      return centred(std::min<double>(width, shape.width * scale),
                     std::min<double>(height, shape.height * scale), width, height);
    }
    case job::Augment::none:
    case job::Augment::crop_flip:
      break;
  }
  return {0, 0, static_cast<double>(width), static_cast<double>(height)};
}

int reduction_of(const Wanted& wanted, int width, int height) {
  const ImageShape& shape = wanted.shape;
  const Region region = region_of(wanted.framing, width, height, shape);
  int reduction = 8;  // the most that JPEG's blocks allow
  while (reduction > 1 &&
         (region.width < shape.width * reduction || region.height < shape.height * reduction))
    reduction /= 2;
  return reduction;
}

}  // namespace fleetrun::runtime
