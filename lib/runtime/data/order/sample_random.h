// Random numbers that depend on what they are for and on nothing else: not on threads, ranks or machines.
// SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"), whose state is a
// counter.
#pragma once
#include <cstdint>
#include <initializer_list>

namespace fleetrun::runtime {

// Keeps the streams apart that start from the same seed and epoch.
enum class RandomUse : std::uint64_t {
  shuffle = 1,
  pad = 2,
  augment = 3,
  synthetic = 4,
  class_texture = 5,
  region = 6,
  balance = 7
};

class SampleRandom {
 public:
  // The stream of, say, {seed, epoch, sample}.
  SampleRandom(RandomUse use, std::initializer_list<std::int64_t> key)
      : state_(static_cast<std::uint64_t>(use)) {
    for (const std::int64_t part : key) state_ = mix(state_ + kGolden) + static_cast<std::uint64_t>(part);
    state_ = mix(state_ + kGolden);
  }

  std::uint64_t next() { return mix(state_ += kGolden); }

  // 0 <= result < 1, in steps of 2^-53.
  double unit() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

  // 0 <= result < count, by the upper 32 bits (bias below count / 2^32).
  std::uint32_t below(std::uint32_t count) {
    return static_cast<std::uint32_t>(((next() >> 32U) * count) >> 32U);
  }

 private:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;  // 2^64 over the golden ratio

  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  std::uint64_t state_;
};

}  // namespace fleetrun::runtime
