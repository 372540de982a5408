#include <doctest/doctest.h>

#include <filesystem>

#include "base/system/file.h"
#include "runtime/data/expect_error.h"
#include "runtime/data/formats/data_set.h"
#include "runtime/data/image_files.h"
#include "runtime/training/setup/model_facts.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::image_list_test {
namespace {

class Listed : public TemporaryFolder {
 public:
  Listed() {
    make_directories(*this / "images/with blank");
    for (const char* name : {"a.png", "b.png", "with blank/c d.png"})
      write(std::string("images/") + name, make_png(gradient_image(3, 4, 6)));
  }
  std::unique_ptr<DataSet> open(const std::string& list) const {
    write("train.txt", list);
    job::DataSetSpec spec;
    spec.format = job::DataFormat::image_list;
    spec.list = *this / "train.txt";
    spec.root = *this / "images";
    return open_data_set(spec);
  }
};

TEST_CASE("a list gives labelled images in its order, as people and their systems write lists") {
  const Listed folder;
  const auto set =
      folder.open("\xef\xbb\xbf# path label\r\nb.png 3\r\n\r\n  a.png\t0  \nwith blank/c d.png 1");
  REQUIRE(set->size() == 3);
  CHECK(set->label(0) == 3);
  CHECK(set->label(1) == 0);
  CHECK(set->label(2) == 1);
  CHECK(set->classes() == 4);
  CHECK(set->shape() == ImageShape{3, 4, 6});
  CHECK(set->describe(2) == folder / "train.txt" + ":5: " + folder / "images/with blank/c d.png");
  ReadScratch scratch;
  std::vector<std::uint8_t> pixels(set->shape().elements());
  set->read({.sample = 2}, scratch, pixels.data());
  CHECK(pixels == planes_of(gradient_image(3, 4, 6)));
}

TEST_CASE("a path may be absolute") {
  const Listed folder;
  CHECK(folder.open(folder / "images/a.png" + " 1\n")->size() == 1);
}

TEST_CASE("all lines that cannot be used are reported at once with their numbers, before any image is read") {
  const Listed folder;
  const std::string list = folder / "train.txt";
  const Error error = error_of([&] {
    folder.open("a.png 0\na.png\nmissing.png 1\na.png -1\na.png 1.5\na.png 99999999999\na.png cat\n 7\n");
  });
  CHECK(error.kind() == ErrorKind::data);
  CHECK(error.message() ==
        "7 lines of " + list + " cannot be used:\n  " + list + ":2: no label; wanted `path label`\n  " +
            list + ":3: " + folder / "images/missing.png: No such file or directory (errno 2)\n  " + list +
            ":4: the label is -1, wanted a whole number from 0 to 999999\n  " + list +
            ":5: the label is 1.5, wanted a whole number from 0 to 999999\n  " + list +
            ":6: the label is 99999999999, wanted a whole number from 0 to 999999\n  " + list +
            ":7: the label is cat, wanted a whole number from 0 to 999999\n  " + list +
            ":8: no label; wanted `path label`");
}

TEST_CASE("of very many bad lines the first are reported and the rest counted") {
  const Listed folder;
  std::string list;
  for (int i = 0; i < 100; ++i) list += "nothing\n";
  const Error error = error_of([&] { folder.open(list); });
  CHECK(error.message().starts_with("100 lines of "));
  CHECK(error.message().ends_with("\n  and 80 more"));
}

TEST_CASE("a label that no model can have is named with its line") {
  const Listed folder;
  check_error(ErrorKind::data, "train.txt:2: the label is 2147483646, wanted a whole number from 0 to 999999",
              [&] { folder.open("a.png 0\nb.png 2147483646\n"); });
  CHECK(folder.open("a.png 0\nb.png 999999\n")->classes() == 1000000);
}

TEST_CASE(
    "row 17: a list in UTF-16 is called so, and a name with control characters leaves the terminal as it is") {
  const Listed folder;
  check_error(ErrorKind::data, "train.txt is UTF-16 text, wanted UTF-8", [&] {
    folder.open(
        std::string("\xff\xfe"
                    "a\0 \0"
                    "0\0\n\0",
                    10));
  });
  const Error error = error_of([&] { folder.open(std::string("\x1b[2Jx\0y.png 0\n", 14)); });
  const std::string words = error.describe("fleetrun");
  CHECK(words.find('\x1b') == std::string::npos);
  CHECK(words.find('\0') == std::string::npos);
  CHECK(words.find("?[2Jx?y.png") != std::string::npos);
}

TEST_CASE("a line with # in front is a comment, unless it names a file") {
  const Listed folder;
  std::filesystem::copy_file(folder / "images/a.png", folder / "images/#a.png");
  const auto set = folder.open("# a.png 0\n#b.png 0\n#a.png 1\nb.png 0\n#\n");
  CHECK(set->labels() == std::vector<std::int32_t>{1, 0});
}

TEST_CASE("an empty list is an error") {
  const Listed folder;
  check_error(ErrorKind::data, "train.txt has no lines `path label`", [&] { folder.open("# nothing\n\n"); });
}

TEST_CASE("a label beyond the classes of the model is named with its line") {
  const Listed folder;
  const auto set = folder.open("a.png 0\nb.png 9\n");
  job::ModelSpec model;
  model.class_dim = 5;
  check_error(ErrorKind::config,
              "model.class_dim is 5, but data.train has 10 classes: " + folder / "train.txt" +
                  ":2: " + folder / "images/b.png of class 9 is the first of the others",
              [&] { resolve_model_facts(model, *set); });
}

}  // namespace
}  // namespace fleetrun::runtime::image_list_test
