#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/data/formats/formats.h"
#include "runtime/data/order/sample_random.h"

namespace fleetrun::runtime {
namespace {

constexpr int kBlock = 4;      // pixels: side of the squares that tell the classes apart
constexpr int kGrey = 128;     // the middle
constexpr int kContrast = 40;  // of a square against the middle
constexpr int kNoiseBits = 7;  // noise between -64 and 63

// A class has its own squares, light or dark, whatever the seed: so that a test set with another seed is the
// same task. The seed and the sample's number give the noise.
class Synthetic : public WholeImageSet {
 public:
  Synthetic(DataSetFacts facts, std::int64_t seed) : WholeImageSet(std::move(facts)), seed_(seed) {}

  std::string describe(int sample) const override {
    return fmt::format("synthetic image {} of seed {}", sample, seed_);
  }

 protected:
  void load(const Framing& framing, ReadScratch& scratch) const override {
    scratch.image.reset(shape());
    draw(framing.sample, scratch.image.pixels.data());
  }

 private:
  void draw(int sample, std::uint8_t* pixels) const {
    SampleRandom noise(RandomUse::synthetic, {seed_, sample});
    std::uint64_t bits = 0;
    int left = 0;  // bits that are still unused
    const auto next_noise = [&] {
      if (left < kNoiseBits) {
        bits = noise.next();
        left = 64;
      }
      const int value = static_cast<int>(bits & ((1U << kNoiseBits) - 1)) - (1 << (kNoiseBits - 1));
      bits >>= kNoiseBits;
      left -= kNoiseBits;
      return value;
    };
    for (int y = 0; y < shape().height; ++y)
      for (int x = 0; x < shape().width; x += kBlock) {
        SampleRandom texture(RandomUse::class_texture, {label(sample), y / kBlock, x / kBlock});
        const std::uint64_t light = texture.next();  // a bit for each channel
        for (int i = x; i < std::min(x + kBlock, shape().width); ++i)
          for (int c = 0; c < shape().channels; ++c) {
            const int square = (light >> static_cast<unsigned>(c) & 1U) != 0 ? kContrast : -kContrast;
            *pixels++ = static_cast<std::uint8_t>(kGrey + square + next_noise());
          }
      }
  }

  std::int64_t seed_;
};

}  // namespace

std::unique_ptr<DataSet> open_synthetic(const job::DataSetSpec& spec) {
  const auto [channels, height, width] = spec.shape;
  if (spec.samples < 1 || spec.classes < 2)
    throw Error(
        ErrorKind::config,
        fmt::format("a synthetic data set has {} samples of {} classes, wanted 1 or more of 2 or more",
                    spec.samples, spec.classes));
  if (height < 1 || width < 1 || width > kMaxPixels / height)
    throw Error(ErrorKind::config,
                fmt::format("the shape of a synthetic data set is [{},{},{}], wanted 1 to {} pixels",
                            channels, height, width, kMaxPixels));
  DataSetFacts facts;
  facts.shape = {channels, height, width};
  facts.classes = spec.classes;
  for (int i = 0; i < spec.samples; ++i) facts.labels.push_back(i % spec.classes);
  return std::make_unique<Synthetic>(std::move(facts), spec.seed);
}

}  // namespace fleetrun::runtime
