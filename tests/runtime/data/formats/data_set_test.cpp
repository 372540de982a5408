#include "runtime/data/formats/data_set.h"

#include <doctest/doctest.h>

#include "runtime/data/expect_error.h"

namespace fleetrun::runtime::data_set_test {
namespace {

class FixedSet : public WholeImageSet {
 public:
  FixedSet(ImageShape shape, int classes, std::vector<std::string> names)
      : WholeImageSet({.shape = shape, .classes = classes, .class_names = std::move(names), .labels = {0}}) {}
  std::string describe(int) const override { return "fixed"; }

 protected:
  void load(const Framing&, ReadScratch&) const override {}
};

TEST_CASE("images have one channel or three") {
  job::DataSetSpec spec;
  spec.channels = 2;
  check_error(ErrorKind::config, "a data set has 2 channels, wanted 3 for colour or 1 for grey",
              [&] { open_data_set(spec); });
}

TEST_CASE("training and test set must be of one kind") {
  const FixedSet train({3, 8, 8}, 2, {"cat", "dog"});
  CHECK_NOTHROW(check_same_kind(train, FixedSet({3, 8, 8}, 2, {"cat", "dog"})));
  CHECK_NOTHROW(check_same_kind(train, FixedSet({3, 8, 8}, 1, {})));
  check_error(ErrorKind::data, "data.test has images of [3,9,8], data.train of [3,8,8]", [&] {
    check_same_kind(train, FixedSet({3, 9, 8}, 2, {"cat", "dog"}));
  });
  check_error(ErrorKind::data, "data.test has 3 classes, data.train only 2", [&] {
    check_same_kind(train, FixedSet({3, 8, 8}, 3, {}));
  });
  check_error(ErrorKind::data, "class 0 of data.train is cat, of data.test dog", [&] {
    check_same_kind(train, FixedSet({3, 8, 8}, 1, {"dog"}));
  });
  check_error(ErrorKind::data, "class 1 of data.train is dog, of data.test missing", [&] {
    check_same_kind(train, FixedSet({3, 8, 8}, 1, {"cat"}));
  });
}

}  // namespace
}  // namespace fleetrun::runtime::data_set_test
