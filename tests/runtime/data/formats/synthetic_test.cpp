#include <doctest/doctest.h>

#include "runtime/data/expect_error.h"
#include "runtime/data/formats/data_set.h"

namespace fleetrun::runtime::synthetic_test {
namespace {

job::DataSetSpec synthetic(std::int64_t seed) {
  job::DataSetSpec spec;
  spec.format = job::DataFormat::synthetic;
  spec.samples = 40;
  spec.shape = {3, 10, 9};
  spec.classes = 4;
  spec.seed = seed;
  return spec;
}

std::vector<std::uint8_t> read(const DataSet& set, int sample) {
  ReadScratch scratch;
  std::vector<std::uint8_t> pixels(set.shape().elements());
  set.read({.sample = sample}, scratch, pixels.data());
  return pixels;
}

int distance(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  int sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return sum;
}

TEST_CASE("a synthetic sample is always the same, and its own") {
  const auto set = open_data_set(synthetic(1));
  REQUIRE(set->size() == 40);
  CHECK(set->shape() == ImageShape{3, 10, 9});
  CHECK(read(*set, 5) == read(*open_data_set(synthetic(1)), 5));
  CHECK(read(*set, 5) != read(*set, 9));
  CHECK(read(*set, 5) != read(*open_data_set(synthetic(2)), 5));
}

TEST_CASE("synthetic bytes are the same on every machine") {
  const std::vector<std::uint8_t> pixels = read(*open_data_set(synthetic(1)), 0);
  const std::size_t plane = pixels.size() / 3;
  const std::vector<int> start = {pixels[0], pixels[plane],     pixels[2 * plane],
                                  pixels[1], pixels[plane + 1], pixels[2 * plane + 1]};
  CHECK(start == std::vector<int>{190, 125, 172, 178, 94, 162});
}

TEST_CASE("classes of one seed tell the classes of another") {
  const auto train = open_data_set(synthetic(1)), test = open_data_set(synthetic(2));
  for (int i = 0; i < 40; ++i) {
    const std::vector<std::uint8_t> image = read(*test, i);
    int nearest = 0;
    for (int other = 1; other < 4; ++other)
      if (distance(image, read(*train, other)) < distance(image, read(*train, nearest))) nearest = other;
    CHECK(train->label(nearest) == test->label(i));
  }
}

TEST_CASE("numbers of a synthetic data set are checked") {
  job::DataSetSpec spec = synthetic(1);
  spec.samples = 0;
  check_error(ErrorKind::config, "has 0 samples of 4 classes", [&] { open_data_set(spec); });
  spec = synthetic(1);
  spec.shape = {3, 100000, 100000};
  check_error(ErrorKind::config, "is [3,100000,100000]", [&] { open_data_set(spec); });
  spec.shape = {2, 10, 9};
  check_error(ErrorKind::config, "a data set has 2 channels, wanted 3 for colour or 1 for grey",
              [&] { open_data_set(spec); });
}

}  // namespace
}  // namespace fleetrun::runtime::synthetic_test
