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

TEST_CASE("hunt 112: there is a warning if one step has more samples than data.train") {
  const Pets pets;
  const DataSets sets(pets.spec(), 1);
  job::JobSpec job;
  job.data.batch_size = sets.train->size();
  CHECK(warn_of_large_step(*sets.train, job, 1).empty());
  const std::string samples = std::to_string(2 * sets.train->size());
  CHECK(warn_of_large_step(*sets.train, job, 2) ==
        "warning: one step of all ranks has " + samples + " samples, and data.train has " +
            std::to_string(sets.train->size()) +
            ": each comes about 2.0 times in a step, which is a whole epoch");
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
  const auto warning = [](const std::string& which) {
    return std::vector{
        "warning: " + which +
        " of data.test are in data.train, too: the test's score says little about new samples"};
  };
  const Pets pets, others;
  job::DataSpec spec = pets.spec();
  spec.test = spec.train;
  CHECK(DataSets(spec, 1).notes == warning("20 of the 20 samples"));
  spec.test = others.spec().train;
  CHECK(DataSets(spec, 1).notes.empty());
  spec.train = {.format = job::DataFormat::synthetic, .samples = 8, .shape = {1, 4, 4}, .classes = 2};
  spec.test = spec.train;
  CHECK(DataSets(spec, 1).notes == warning("8 of the 8 samples"));
  spec.test->seed = 1;
  CHECK(DataSets(spec, 1).notes.empty());
}

job::DataSetSpec list_of(const TemporaryFolder& folder, const std::string& lines) {
  static int lists = 0;
  const std::string name = "list" + std::to_string(++lists) + ".txt";
  folder.write(name, lines);
  return {.format = job::DataFormat::image_list, .list = folder / name, .root = folder.path()};
}

TEST_CASE("hunt 17: files that two lists share are counted, under whatever path") {
  const Pets pets;
  std::filesystem::create_directory_symlink(pets / "dog", pets / "hound");
  job::DataSpec spec;
  spec.train = list_of(pets, "cat/0.png 0\ncat/1.png 0\ndog/0.png 1\n");
  spec.test = list_of(pets, "./cat/1.png 0\ncat/2.png 0\nhound/0.png 1\nhound/0.png 1\n");
  CHECK(DataSets(spec, 1).notes.back().starts_with(
      "warning: 3 of the 4 samples of data.test are in data.train, too"));
  spec.test = list_of(pets, "cat/3.png 0\ndog/3.png 1\n");
  CHECK(DataSets(spec, 1).notes.empty());
}

TEST_CASE("hunt 20: a symbolic link is the file that it leads to, also over another link") {
  const Pets pets;
  std::filesystem::create_directories(pets / "links");
  const auto link = [&](const std::string& target, const char* name) {
    std::filesystem::create_symlink(target, pets / ("links/" + std::string(name)));
  };
  link("../cat/1.png", "relative.png");
  link(pets / "dog/0.png", "absolute.png");
  link("absolute.png", "again.png");
  link("../cat/2.png", "other.png");
  job::DataSpec spec;
  spec.train = list_of(pets, "cat/0.png 0\ncat/1.png 0\ndog/0.png 1\n");
  spec.test =
      list_of(pets, "links/relative.png 0\nlinks/absolute.png 1\nlinks/again.png 1\nlinks/other.png 0\n");
  CHECK(DataSets(spec, 1).notes.back().starts_with(
      "warning: 3 of the 4 samples of data.test are in data.train, too"));
}

TEST_CASE("hunt 17: data.split sets apart files, also those that a list names more than once") {
  const Pets pets;
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += "cat/" + std::to_string(i % 10) + ".png 0\n";
  job::DataSpec spec;
  spec.train = list_of(pets, lines);
  spec.split = 0.2;
  const DataSets sets(spec, 1);
  CHECK(sets.test->size() == 6);
  for (int test = 0; test < sets.test->size(); ++test)
    for (int train = 0; train < sets.train->size(); ++train)
      CHECK(sets.test->source_of(test) != sets.train->source_of(train));
}

TEST_CASE("the log says that a list has no label 0") {
  const Pets pets;
  job::DataSpec spec;
  spec.train = list_of(pets, "cat/0.png 1\ndog/0.png 2\n");
  CHECK(
      DataSets(spec, 1).notes ==
      std::vector<std::string>{
          "data.train: no sample has label 0; labels count from 0, so the model gets a class without samples"});
}

TEST_CASE("hunt 17: a line names the first image that makes the size 224x224") {
  const Pets pets;
  pets.write("dog/odd.png", make_png(gradient_image(3, 6, 5)));
  CHECK(DataSets(pets.spec(), 1).notes ==
        std::vector<std::string>{
            "data.train: images differ in size: " + (pets / "cat/0.png") + " is 4x4 and " +
            (pets / "dog/odd.png") +
            " 5x6; each is resized to 224x224, and data.train.image_size sets another size"});
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
