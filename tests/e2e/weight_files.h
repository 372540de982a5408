// How far the weights in two safetensors files are apart.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace fleetrun::testing {

// Of a file whose tensors are all f32.
struct WeightFile {
  std::string header;  // without what the file says about the model
  std::vector<float> numbers;

  explicit WeightFile(const std::string& bytes) {
    std::uint64_t length = 0;
    REQUIRE(bytes.size() > sizeof length);
    std::memcpy(&length, bytes.data(), sizeof length);
    const std::size_t begin = sizeof length + length;
    nlohmann::json tensors = nlohmann::json::parse(bytes.substr(sizeof length, length));
    tensors.erase("__metadata__");
    header = tensors.dump();
    numbers.resize((bytes.size() - begin) / sizeof(float));
    std::memcpy(numbers.data(), bytes.data() + begin, numbers.size() * sizeof(float));
  }
};

inline double greatest_difference(const std::string& one, const std::string& other) {
  const WeightFile a(one), b(other);
  REQUIRE(a.header == b.header);
  double greatest = 0;
  for (std::size_t i = 0; i < a.numbers.size(); ++i)
    greatest = std::max(greatest, std::abs(double{a.numbers[i]} - double{b.numbers[i]}));
  return greatest;
}

// |a - b| / |a|, of all weights together.
inline double relative_difference(const std::string& one, const std::string& other) {
  const WeightFile a(one), b(other);
  REQUIRE(a.header == b.header);
  double apart = 0, norm = 0;
  for (std::size_t i = 0; i < a.numbers.size(); ++i) {
    apart += std::pow(double{a.numbers[i]} - double{b.numbers[i]}, 2);
    norm += std::pow(double{a.numbers[i]}, 2);
  }
  return std::sqrt(apart / norm);
}

}  // namespace fleetrun::testing
