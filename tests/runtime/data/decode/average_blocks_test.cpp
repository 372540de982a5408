#include "runtime/data/decode/average_blocks.h"

#include <doctest/doctest.h>

#include "runtime/data/decode/picture.h"

namespace fleetrun::runtime::average_blocks_test {
namespace {

using test::picture, test::Pixels;

TEST_CASE("hunt 15: a picture that is made smaller is the mean of its blocks, also at the edges") {
  Image image = picture({1, 3, 3}, {0, 4, 9, 8, 20, 11, 1, 2, 7});
  average_blocks(2, image);
  CHECK(image.shape == ImageShape{1, 2, 2});
  CHECK(image.pixels == Pixels{8, 10, 2, 7});
  CHECK(image.source_width == 3);
  CHECK(image.whole_width == 2);
  Image coloured = picture({3, 2, 2}, {0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32});
  average_blocks(2, coloured);
  CHECK(coloured.pixels == Pixels{15, 16, 17});
}

}  // namespace
}  // namespace fleetrun::runtime::average_blocks_test
