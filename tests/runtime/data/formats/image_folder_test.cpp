#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/system/file.h"
#include "runtime/data/decode/exif_orientation.h"
#include "runtime/data/expect_error.h"
#include "runtime/data/formats/data_set.h"
#include "runtime/data/image_files.h"
#include "runtime/data/loader.h"
#include "runtime/training/setup/model_facts.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::image_folder_test {
namespace {

class Folder : public TemporaryFolder {
 public:
  void add(const std::string& class_name, const std::string& file, const std::string& content) const {
    make_directories(*this / class_name);
    write(class_name + "/" + file, content);
  }
  job::DataSetSpec spec() const {
    job::DataSetSpec spec;
    spec.format = job::DataFormat::image_folder;
    spec.path = path();
    return spec;
  }
  std::unique_ptr<DataSet> open() const { return open_data_set(spec()); }
};

std::vector<std::uint8_t> read(const DataSet& set, int sample) {
  ReadScratch scratch;
  std::vector<std::uint8_t> pixels(set.shape().elements());
  set.read({.sample = sample}, scratch, pixels.data());
  return pixels;
}

TEST_CASE("classes are numbered in byte order of their names, files in byte order within them") {
  const Folder folder;
  const std::string image = make_png(gradient_image(3, 4, 4));
  folder.add("b", "2.png", image);
  folder.add("b", "10.PNG", image);
  folder.add("Zebra", "x.jpeg", make_jpeg(gradient_image(3, 4, 4)));
  folder.add("\xc3\xa4pfel", "y.jpg", image);
  folder.add("b", "notes.txt", "not an image");
  folder.add("b", ".hidden.png", "half copied");
  folder.add(".git", "a.png", image);
  folder.write("README.jpg", "beside the classes");
  const auto set = folder.open();
  CHECK(set->class_names() == std::vector<std::string>{"Zebra", "b", "\xc3\xa4pfel"});
  CHECK(set->classes() == 3);
  REQUIRE(set->size() == 4);
  CHECK(set->label(0) == 0);
  CHECK(set->label(1) == 1);
  CHECK(set->label(2) == 1);
  CHECK(set->label(3) == 2);
  CHECK(set->describe(1) == folder / "b/10.PNG");
  CHECK(set->describe(2) == folder / "b/2.png");
}

TEST_CASE("a class folder whose name is not UTF-8 is refused, as no model file can hold the name") {
  const Folder folder;
  const std::string image = make_png(gradient_image(3, 4, 4));
  folder.add("tea", "1.png", image);
  folder.add("caf\xe9", "1.png", image);
  check_error(ErrorKind::data,
              "class folder " + (folder / "caf\xef\xbf\xbd") + " has a name that is not UTF-8",
              [&] { folder.open(); });
  check_error(ErrorKind::data, "has a name that is not UTF-8", [&] {
    open_test_set(folder.spec(), {"caf\xef\xbf\xbd", "tea"});
  });
}

TEST_CASE("what is no image is counted, and the first of it named; hidden files are not") {
  const Folder folder;
  const std::string image = make_png(gradient_image(3, 4, 4));
  folder.add("a", "1.png", image);
  folder.add("a", "2.tiff", image);
  folder.add("a", ".DS_Store", "x");
  folder.add("b", "1.WEBP", make_webp(gradient_image(3, 4, 4)));
  folder.add("b", "2.bmp", make_bmp(gradient_image(3, 4, 4)));
  folder.add("b/more", "1.png", image);
  folder.write("labels.csv", "x");
  folder.add("b", "z.gif", "x");
  const auto set = folder.open();
  CHECK(set->size() == 3);
  CHECK(set->ignored().count == 4);
  CHECK(set->ignored().first == std::vector<std::string>{"labels.csv", "a/2.tiff", "b/z.gif"});
  for (int sample = 1; sample < 3; ++sample) CHECK(read(*set, sample) == planes_of(gradient_image(3, 4, 4)));
}

TEST_CASE("images that agree give their own size") {
  const Folder folder;
  folder.add("a", "1.png", make_png(gradient_image(3, 5, 7)));
  folder.add("b", "1.png", make_png(gradient_image(3, 5, 7)));
  const auto set = folder.open();
  CHECK(set->shape() == ImageShape{3, 5, 7});
  CHECK(read(*set, 1) == planes_of(gradient_image(3, 5, 7)));
}

TEST_CASE("images that differ become 224 pixels wide and high, or what image_size says") {
  const Folder folder;
  folder.add("a", "1.png", make_png(gradient_image(3, 5, 7)));
  folder.add("a", "2.jpg", make_jpeg(gradient_image(1, 9, 9)));
  CHECK(folder.open()->shape() == ImageShape{3, 224, 224});
  job::DataSetSpec spec = folder.spec();
  spec.image_size = 12;
  spec.channels = 1;
  const auto set = open_data_set(spec);
  CHECK(set->shape() == ImageShape{1, 12, 12});
  CHECK(read(*set, 0).size() == 144);
  CHECK(read(*set, 1).size() == 144);
}

TEST_CASE("a grey image has three equal channels, as channels says") {
  const Folder folder;
  folder.add("a", "1.png", make_png(gradient_image(1, 3, 3)));
  const std::vector<std::uint8_t> pixels = read(*folder.open(), 0);
  const Image grey = gradient_image(1, 3, 3);
  for (std::size_t i = 0; i < 9; ++i)
    for (std::size_t c = 0; c < 3; ++c) CHECK(pixels[9 * c + i] == grey.pixels[i]);
}

TEST_CASE("a thumbnail before the header does not hide the size") {
  const Folder folder;
  std::string jpeg = make_jpeg(gradient_image(3, 6, 8));
  constexpr int kSegment = 6000;  // bytes, more than are read at first
  const std::string exif = std::string("\xff\xe1") + static_cast<char>(kSegment >> 8) +
                           static_cast<char>(kSegment & 0xff) + std::string(kSegment - 2, 'x');
  jpeg.insert(2, exif);
  folder.add("a", "1.jpg", jpeg);
  CHECK(folder.open()->shape() == ImageShape{3, 6, 8});
}

TEST_CASE("row 8: images that were all turned give the upright size") {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    const Folder folder;
    const std::string jpeg = make_jpeg(gradient_image(3, 16, 24)), png = make_png(gradient_image(3, 16, 24));
    folder.add("a", "1.jpg", with_orientation(jpeg, orientation, true));
    folder.add("b", "1.png", with_png_chunk(png, 33, "eXIf", make_exif(orientation, false)));
    const bool turned = orientation >= 5;
    CHECK(folder.open()->shape() == ImageShape{3, turned ? 24 : 16, turned ? 16 : 24});
  }
}

TEST_CASE("a PNG file with an orientation gives the same picture as a JPEG file with it") {
  const Image picture = noisy_image(3, 16, 24);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(orientation);
    const Folder folder;
    folder.add("a", "1.png", with_png_chunk(make_png(picture), 33, "eXIf", make_exif(orientation, false)));
    Image upright = picture;
    make_upright(orientation, upright);
    CHECK(read(*folder.open(), 0) == planes_of(upright));
  }
}

TEST_CASE("row 9: a link to nowhere and a pipe are reported when they are read, and do not decide the size") {
  const Folder folder;
  folder.add("a", "2.png", make_png(gradient_image(3, 8, 6)));
  std::filesystem::create_symlink("nowhere", folder / "a/0.png");
  REQUIRE(::mkfifo((folder / "a/1.png").c_str(), 0600) == 0);
  const auto set = folder.open();
  CHECK(set->shape() == ImageShape{3, 8, 6});
  LoaderOptions options;
  options.batch = 3;
  options.bad_sample = job::BadSample::skip;
  Loader loader(*set, options);
  loader.start_epoch(0);
  REQUIRE(loader.next() != nullptr);
  CHECK(loader.take_skipped().size() == 2);
  CHECK(loader.skipped_names() == folder / "a/0.png" + '\0' + folder / "a/1.png" + '\0');
}

TEST_CASE("a class folder that is a link to nowhere or in a circle is named, so that no label shifts") {
  for (const char* target : {"nowhere", "b"}) {
    CAPTURE(target);
    const Folder folder;
    const std::string image = make_png(gradient_image(3, 4, 4));
    for (const char* name : {"a", "c"}) folder.add(name, "1.png", image);
    std::filesystem::create_symlink(target, folder / "b");
    check_error(ErrorKind::missing, "class folder " + folder / "b: ", [&] { folder.open(); });
  }
}

TEST_CASE(
    "row 10: a class may have no images in a test set, or no folder, and the others keep their labels") {
  const Folder train, test;
  const std::string image = make_png(gradient_image(3, 4, 4));
  for (const char* name : {"a", "b", "c"}) train.add(name, "1.png", image);
  make_directories(test / "a");
  test.add("c", "1.png", image);
  const auto trained_on = train.open(), set = open_test_set(test.spec(), trained_on->class_names());
  CHECK_NOTHROW(check_same_kind(*trained_on, *set));
  REQUIRE(set->size() == 1);
  CHECK(set->label(0) == 2);
  CHECK(set->class_names() == trained_on->class_names());
  test.add("d", "1.png", image);
  check_error(ErrorKind::data, test / "d: the training data has no class d",
              [&] { open_test_set(test.spec(), trained_on->class_names()); });
  const Folder none;
  make_directories(none / "b");
  check_error(ErrorKind::data, "none of the class folders in " + none.path(),
              [&] { open_test_set(none.spec(), trained_on->class_names()); });
}

TEST_CASE("row 11: one class is nothing to learn, unless the model has more") {
  const Folder folder;
  folder.add("a", "1.png", make_png(gradient_image(3, 4, 4)));
  const auto set = folder.open();
  check_error(ErrorKind::config, "data.train has 1 class, wanted at least 2",
              [&] { resolve_model_facts(job::ModelSpec(), *set); });
  job::ModelSpec model;
  model.class_dim = 2;
  CHECK(resolve_model_facts(model, *set).classes == 2);
}

TEST_CASE("a broken file is reported when it is read, and does not decide the size") {
  const Folder folder;
  folder.add("a", "0.jpg", "");
  folder.add("a", "1.jpg", "<html>");
  folder.add("a", "2.jpg", with_jpeg_size(make_jpeg(gradient_image(3, 8, 8)), 60000, 60000));
  folder.add("a", "3.jpg", make_jpeg(gradient_image(3, 8, 8)));
  const auto set = folder.open();
  CHECK(set->shape() == ImageShape{3, 8, 8});
  check_error(ErrorKind::data, "a/0.jpg: the file is empty", [&] { read(*set, 0); });
  check_error(ErrorKind::data, "a/1.jpg: no JPEG, PNG, WebP or BMP file", [&] { read(*set, 1); });
  check_error(ErrorKind::data, "a/2.jpg: the header says 60000x60000", [&] { read(*set, 2); });
  CHECK(read(*set, 3).size() == 192);
}

TEST_CASE("hunt: images of which none can be read are refused with the error of the first") {
  const Folder folder;
  folder.add("a", "0.jpg", "<html>");
  folder.add("b", "1.jpg", "");
  check_error(ErrorKind::data,
              "none of 2 images can be read; the first: " + folder.path() + "/a/0.jpg: no JPEG",
              [&] { folder.open(); });
}

TEST_CASE("a file that vanished, or is a folder or a pipe, is named at once") {
  const Folder folder;
  folder.add("a", "1.png", make_png(gradient_image(3, 4, 4)));
  folder.add("a", "2.png", make_png(gradient_image(3, 4, 4)));
  const auto set = folder.open();
  std::filesystem::remove(folder / "a/1.png");
  check_error(ErrorKind::missing, folder / "a/1.png", [&] { read(*set, 0); });
  std::filesystem::remove(folder / "a/2.png");
  REQUIRE(::mkfifo((folder / "a/2.png").c_str(), 0600) == 0);
  check_error(ErrorKind::data, "a/2.png is a device, pipe or socket", [&] { read(*set, 1); });
}

TEST_CASE("a folder that holds no data set says what is missing") {
  const Folder folder;
  check_error(ErrorKind::data, "data set folder " + folder.path() + " is empty", [&] { folder.open(); });
  folder.write("1.jpg", "x");
  check_error(ErrorKind::data, folder.path() + " has no class folders", [&] { folder.open(); });
  folder.add("cat", "notes.txt", "x");
  check_error(ErrorKind::data, folder / "cat has no .jpg, .jpeg, .jpe, .jfif, .png, .webp or .bmp files",
              [&] { folder.open(); });
  job::DataSetSpec spec = folder.spec();
  spec.path = folder / "nowhere";
  check_error(ErrorKind::missing, folder / "nowhere", [&] { open_data_set(spec); });
  spec.path = folder / "1.jpg";
  check_error(ErrorKind::missing, "1.jpg: Not a directory", [&] { open_data_set(spec); });
}

}  // namespace
}  // namespace fleetrun::runtime::image_folder_test
