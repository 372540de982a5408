#include "runtime/training/setup/data_sets.h"

#include <doctest/doctest.h>

#include "base/system/file.h"
#include "runtime/data/image_files.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::data_sets_test {
namespace {

struct Pets : TemporaryFolder {
  Pets() {
    const std::string image = make_png(gradient_image(3, 4, 4));
    for (const std::string pet : {"cat", "dog"}) {
      make_directories(*this / pet);
      for (int i = 0; i < 10; ++i) write(pet + "/" + std::to_string(i) + ".png", image);
    }
  }
  job::DataSpec spec() const {
    job::DataSpec spec;
    spec.train.path = path();
    return spec;
  }
};

TEST_CASE("data.split sets samples of each class aside, and a line says how many") {
  const Pets pets;
  job::DataSpec spec = pets.spec();
  spec.split = 0.2;
  const DataSets sets(spec, 5);
  CHECK(sets.train->size() == 16);
  REQUIRE(sets.test != nullptr);
  CHECK(sets.test->size() == 4);
  CHECK(sets.test->class_names() == std::vector<std::string>{"cat", "dog"});
  CHECK(sets.notes == std::vector<std::string>{"data.split: 16 samples to train on, 4 to evaluate on"});
  const DataSets again(spec, 5), others(spec, 6);
  std::string here, there, elsewhere;
  for (int i = 0; i < 4; ++i) {
    here += sets.test->describe(i);
    there += again.test->describe(i);
    elsewhere += others.test->describe(i);
  }
  CHECK(here == there);
  CHECK(here != elsewhere);
}

TEST_CASE("files that are no images are ignored, and a line names some of them") {
  const Pets pets;
  CHECK(DataSets(pets.spec(), 1).notes.empty());
  pets.write("cat/x.tiff", "x");
  CHECK(DataSets(pets.spec(), 1).notes == std::vector<std::string>{"data.train: 1 file ignored: cat/x.tiff"});
  for (const std::string name : {"a.txt", "b.txt", "c.txt", "d.txt"}) pets.write("dog/" + name, "x");
  CHECK(DataSets(pets.spec(), 1).notes ==
        std::vector<std::string>{"data.train: 5 files ignored: cat/x.tiff, dog/a.txt, dog/b.txt and 2 more"});
  job::DataSpec spec = pets.spec();
  spec.test = spec.train;
  CHECK(DataSets(spec, 1).notes.at(1).starts_with("data.test: 5 files ignored: "));
}

TEST_CASE("a line warns of a test on the samples that the model trains on") {
  const std::string warning =
      "warning: data.test has samples of data.train: the test's score says nothing about new samples";
  const Pets pets, others;
  job::DataSpec spec = pets.spec();
  spec.test = spec.train;
  CHECK(DataSets(spec, 1).notes == std::vector{warning});
  spec.test = others.spec().train;
  CHECK(DataSets(spec, 1).notes.empty());
  spec.train = {.format = job::DataFormat::synthetic, .samples = 8, .shape = {1, 4, 4}, .classes = 2};
  spec.test = spec.train;
  CHECK(DataSets(spec, 1).notes == std::vector{warning});
  spec.test->seed = 1;
  CHECK(DataSets(spec, 1).notes.empty());
}

TEST_CASE("a folder in the folder of a class is named as one") {
  const Pets pets;
  make_directories(pets / "cat/young");
  CHECK(DataSets(pets.spec(), 1).notes ==
        std::vector<std::string>{"data.train: 1 folder ignored: cat/young/"});
  pets.write("cat/x.txt", "x");
  CHECK(DataSets(pets.spec(), 1).notes ==
        std::vector<std::string>{"data.train: 2 files and folders ignored: cat/x.txt, cat/young/"});
}

}  // namespace
}  // namespace fleetrun::runtime::data_sets_test
