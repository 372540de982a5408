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

TEST_CASE(
    "names of classes give labels by their order only where the model has no names, and all are there") {
  const FixedSet folder({3, 8, 8}, 2, {"cat", "dog"});
  const FixedSet list({3, 8, 8}, 1, {});
  CHECK(compare_labels(folder, "pets", {"cat", "dog"}, 2).empty());
  CHECK(compare_labels(list, "list.txt", {}, 2).empty());
  CHECK(compare_labels(list, "list.txt", {"cat", "dog"}, 2).empty());
  CHECK(compare_labels(folder, "pets", {}, 2) ==
        "warning: the classes of the model have no names: pets takes label 0 for cat and so on, in the "
        "order of the names");
  check_error(ErrorKind::data, "pets has 2 classes, the model 3 without names",
              [&] { compare_labels(folder, "pets", {}, 3); });
}

TEST_CASE("hunt 17: a warning names the first class folder whose number differs from its label") {
  const std::vector<std::string> numbers = {"0", "1", "10", "2"};
  const FixedSet folder({3, 8, 8}, 4, numbers), list({3, 8, 8}, 4, {});
  const std::string start = "warning: fleetrun sorts class folders as text, so folder 10 has label 2; ";
  CHECK(compare_labels(folder, "photos", {}, 4) ==
        start + "photos has folders, and the model was trained on numbers as labels");
  CHECK(compare_labels(list, "list.txt", numbers, 4) ==
        start + "the model was trained on folders, and list.txt has numbers as labels");
  CHECK(compare_labels(list, "list.txt", {"00", "01", "02"}, 3).empty());
  CHECK(compare_labels(list, "list.txt", {"1", "2"}, 2)
            .starts_with("warning: fleetrun sorts class folders as text, so folder 1 has label 0; "));
  CHECK(compare_labels(folder, "photos", numbers, 4).empty());
}

}  // namespace
}  // namespace fleetrun::runtime::data_set_test
