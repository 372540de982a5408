// The small image set that comes with the project: grey textures that a convolution tells apart and that a
// linear model cannot, because phase, polarity and place are random, so that every pixel has the same mean in
// each class. Integer arithmetic only, so that every machine draws the same images.
#pragma once
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace fleetrun::patterns {

constexpr int kSide = 16;     // pixels
constexpr int kClasses = 6;   // stripes -, stripes |, stripes /, stripes \, checkers, rings
constexpr int kTrain = 3000;  // images
constexpr int kTest = 900;
constexpr int kStep = 16;  // between grey values: few of them, so that the files stay small
constexpr std::uint32_t kTrainSeed = 20210;
constexpr std::uint32_t kTestSeed = 20211;

struct ImageSet {
  std::vector<std::uint8_t> pixels;  // [count, kSide, kSide]
  std::vector<std::uint8_t> labels;  // [count]
};

// A triangle wave between -128 and 128; position and period in 1/16 pixel.
inline int wave(int position, int period) {
  const int inside = ((position % period) + period) % period;
  const int rising = 512 * inside / period;  // 0 .. 511
  return rising < 256 ? rising - 128 : 384 - rising;
}

inline int integer_root(int square) {
  int root = 0;
  while ((root + 1) * (root + 1) <= square) ++root;
  return root;
}

struct Texture {
  int kind, period, phase_x, phase_y, contrast, centre_x, centre_y, radius, light;
};

inline Texture random_texture(int kind, std::mt19937& random) {
  const auto between = [&random](int low, int high) {
    return low + static_cast<int>(random() % static_cast<std::uint32_t>(high - low + 1));
  };
  Texture texture{};
  texture.kind = kind;
  texture.period = between(56, 88);  // 3.5 to 5.5 pixels
  texture.phase_x = between(0, 255);
  texture.phase_y = between(0, 255);
  texture.contrast = between(50, 110) * (between(0, 1) == 0 ? 1 : -1);
  texture.centre_x = between(5, 10);
  texture.centre_y = between(5, 10);
  texture.radius = between(6, 9);
  texture.light = between(100, 155);
  return texture;
}

// The texture's value at a pixel, between -128 and 128.
inline int texture_at(const Texture& t, int x, int y) {
  const int u = 16 * x + t.phase_x, v = 16 * y + t.phase_y;
  const int diagonal = t.period * 181 / 128;  // the same width across a diagonal: times the root of 2
  switch (t.kind) {
    case 0:
      return wave(v, t.period);
    case 1:
      return wave(u, t.period);
    case 2:
      return wave(u + v, diagonal);
    case 3:
      return wave(u - v, diagonal);
    case 4:
      return wave(u, diagonal) * wave(v, diagonal) / 128;
    default: {
      const int dx = 16 * (x - t.centre_x), dy = 16 * (y - t.centre_y);
      return wave(integer_root(dx * dx + dy * dy) + t.phase_x, t.period);
    }
  }
}

inline ImageSet draw(std::uint32_t seed, int count) {
  ImageSet set;
  std::mt19937 random(seed);
  for (int i = 0; i < count; ++i) {
    const int kind = static_cast<int>(random() % kClasses);
    const Texture texture = random_texture(kind, random);
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x) {
        const int dx = x - texture.centre_x, dy = y - texture.centre_y;
        const bool inside = dx * dx + dy * dy <= texture.radius * texture.radius;
        const int noise = static_cast<int>(random() % 31) + static_cast<int>(random() % 31) - 30;
        const int value =
            texture.light + noise + (inside ? texture.contrast * texture_at(texture, x, y) / 128 : 0);
        set.pixels.push_back(static_cast<std::uint8_t>(std::clamp(value, 0, 255) / kStep * kStep));
      }
    set.labels.push_back(static_cast<std::uint8_t>(kind));
  }
  return set;
}

}  // namespace fleetrun::patterns
