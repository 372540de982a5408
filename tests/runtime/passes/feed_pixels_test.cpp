#include "runtime/passes/feed_pixels.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "runtime/graph/program_text.h"
#include "runtime/graph/verify.h"

namespace fleetrun::runtime::feed_pixels_test {
namespace {

job::DataSetSpec some_set() {
  job::DataSetSpec set;
  set.mean = {120.5, 3};
  set.deviation = {2, 4};
  return set;
}

std::string fed(const std::string& text, const job::DataSetSpec& set = some_set()) {
  Program program = parse_program(text, all_ops());
  feed_pixels(program, all_ops(), set);
  verify(program, all_ops());
  return print_program(program, all_ops());
}

const std::string kRelu = "relu x=image -> y=a {} forward\n";

TEST_CASE("pixels and views become feeds, from which the image is made") {
  CHECK(fed("feed image f32[8,2,5,6]\n"
            "activation a f32[8,2,5,6]\n" +
            kRelu) ==
        "activation image f32[8,2,5,6]\n"
        "activation a f32[8,2,5,6]\n"
        "feed pixels u8[8,2,5,6]\n"
        "feed view i32[8,4]\n"
        "crop_mirror_normalize x=pixels view=view -> y=image "
        "{dtype=\"f32\"; mean=[120.5,3.0]; scale=[0.5,0.25]} forward\n" +
            kRelu);
}

TEST_CASE("the image gets the type of the only cast that reads it") {
  const std::string cast =
      "feed image f32[8,2,5,6]\n"
      "activation narrow f16[8,2,5,6]\n"
      "activation a f16[8,2,5,6]\n"
      "cast x=image -> y=narrow {dtype=\"f16\"} forward\n"
      "relu x=narrow -> y=a {} forward\n";
  CHECK(fed(cast) ==
        "activation image f16[8,2,5,6]\n"
        "activation narrow f16[8,2,5,6]\n"
        "activation a f16[8,2,5,6]\n"
        "feed pixels u8[8,2,5,6]\n"
        "feed view i32[8,4]\n"
        "crop_mirror_normalize x=pixels view=view -> y=image "
        "{dtype=\"f16\"; mean=[120.5,3.0]; scale=[0.5,0.25]} forward\n" +
            kRelu);
}

TEST_CASE("a cast stays if another op reads the wide image") {
  const std::string two_readers =
      fed("feed image f32[8,2,5,6]\n"
          "activation narrow f16[8,2,5,6]\n"
          "activation a f32[8,2,5,6]\n"
          "cast x=image -> y=narrow {dtype=\"f16\"} forward\n" +
          kRelu);
  CHECK(two_readers.find("cast x=image -> y=narrow") != std::string::npos);
  CHECK(two_readers.find("{dtype=\"f32\"; mean") != std::string::npos);
}

TEST_CASE("a mean for other channels than those of the image is refused") {
  job::DataSetSpec set = some_set();
  set.mean = {1, 2, 3};
  CHECK_THROWS_WITH_AS(fed("feed image f32[8,2,5,6]\n", set),
                       "mean of a data set has 3 numbers, its images have 2 channels", Error);
}

}  // namespace
}  // namespace fleetrun::runtime::feed_pixels_test
