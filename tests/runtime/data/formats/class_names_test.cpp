#include "runtime/data/formats/class_names.h"

#include <doctest/doctest.h>

#include "runtime/data/expect_error.h"

namespace fleetrun::runtime::class_names_test {
namespace {

using Names = std::vector<std::string>;

struct LabelledSet : WholeImageSet {
  LabelledSet(int classes, Names names)
      : WholeImageSet(
            {.shape = {3, 8, 8}, .classes = classes, .class_names = std::move(names), .labels = {0}}) {}
  std::string describe(int) const override { return "fixed"; }
  void load(const Framing&, ReadScratch&) const override {}
};

LabelNote note_of(const Names& names) {
  return compare_names_and_numbers({"the model", {}}, {"photos", names});
}

TEST_CASE("names of classes are said to give labels by their order only where the model has none") {
  const LabelledSet folder(2, {"cat", "dog"}), list(2, {});
  CHECK(compare_labels(folder, "pets", {"cat", "dog"}, 2).empty());
  CHECK(compare_labels(list, "list.txt", {}, 2).empty());
  CHECK(
      compare_labels(folder, "pets", {}, 2) ==
      "warning: pets has names of classes, and the model was trained on numbers as labels: fleetrun takes the "
      "labels in the order of the names, so label 0 is cat and label 1 is dog");
  CHECK(
      compare_labels(list, "list.txt", {"cat", "dog"}, 2) ==
      "warning: the model was trained on names of classes, and list.txt has numbers as labels: fleetrun takes "
      "the labels in the order of the names, so label 0 is cat and label 1 is dog");
}

TEST_CASE("a data set with fewer classes than a model without names is refused") {
  check_error(ErrorKind::data, "pets has 2 classes, the model 3 without names", [] {
    compare_labels(LabelledSet(2, {"cat", "dog"}), "pets", {}, 3);
  });
}

TEST_CASE("hunt 17: a warning names the first class that does not have its number as its label") {
  const Names numbers = {"0", "1", "10", "2"};
  const LabelledSet folder(4, numbers), list(4, {});
  const std::string start = "warning: fleetrun sorts class names as text, so 10 has label 2; ";
  CHECK(compare_labels(folder, "photos", {}, 4) ==
        start + "photos has names of classes, and the model was trained on numbers as labels");
  CHECK(compare_labels(list, "list.txt", numbers, 4) ==
        start + "the model was trained on names of classes, and list.txt has numbers as labels");
  CHECK(compare_labels(folder, "photos", numbers, 4).empty());
}

TEST_CASE("numbers that are the labels need no words") {
  for (const Names& names :
       {Names{"00", "01", "02"}, Names{"class_0", "class_1"}, Names{"7x0", "7x1", "7x2"}})
    CHECK(note_of(names).text.empty());
}

TEST_CASE("hunt 20: numbers behind the same text count as numbers") {
  Names names = {"class_0", "class_1", "class_10"};
  for (int number = 2; number < 10; ++number) names.push_back("class_" + std::to_string(number));
  const LabelNote note = note_of(names);
  CHECK(note.text.starts_with("fleetrun sorts class names as text, so class_10 has label 2; "));
  CHECK(note.contradicts);
}

TEST_CASE("numbers in their order that are not the labels contradict nothing") {
  for (const Names& names :
       {Names{"1", "2", "3"}, Names{"class1", "class2"}, Names{"2019", "2020", "2021"}}) {
    const LabelNote note = note_of(names);
    CHECK(note.text.find("so label 0 is " + names.front()) != std::string::npos);
    CHECK(!note.contradicts);
  }
}

TEST_CASE("names such as n01440764 of ImageNet, and names that begin differently, are no labels") {
  for (const Names& names : {Names{"n01440764", "n01443537"}, Names{"a0", "b1"}, Names{"0", "one"}}) {
    const LabelNote note = note_of(names);
    CHECK(note.text.find("in the order of the names, so label 0 is " + names.front()) != std::string::npos);
    CHECK(!note.contradicts);
  }
}

}  // namespace
}  // namespace fleetrun::runtime::class_names_test
