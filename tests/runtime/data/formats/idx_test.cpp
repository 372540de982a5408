#include <doctest/doctest.h>

#include "runtime/data/expect_error.h"
#include "runtime/data/formats/data_set.h"
#include "runtime/data/image_files.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::idx_test {
namespace {

struct Files {
  TemporaryFolder folder;

  std::unique_ptr<DataSet> open(const std::string& images, const std::string& labels) const {
    folder.write("images", images);
    folder.write("labels", labels);
    return open_data_set(spec());
  }
  job::DataSetSpec spec() const {
    job::DataSetSpec spec;
    spec.format = job::DataFormat::idx;
    spec.images = folder / "images";
    spec.labels = folder / "labels";
    spec.channels = 1;
    return spec;
  }
};

const std::string kImages = make_idx({2, 2, 3}, "abcdefABCDEF");
const std::string kLabels = make_idx({2}, std::string("\x04\x01", 2));

void check_images(const DataSet& set) {
  REQUIRE(set.size() == 2);
  CHECK(set.shape() == ImageShape{1, 2, 3});
  CHECK(set.classes() == 5);
  CHECK(set.label(0) == 4);
  CHECK(set.label(1) == 1);
  ReadScratch scratch;
  std::string pixels(6, ' ');
  set.read({.sample = 1}, scratch, reinterpret_cast<std::uint8_t*>(pixels.data()));
  CHECK(pixels == "ABCDEF");
}

TEST_CASE("plain and gzipped IDX files hold the same images") {
  const Files files;
  check_images(*files.open(kImages, kLabels));
  check_images(*files.open(gzip(kImages), gzip(kLabels)));
  CHECK(files.open(kImages, kLabels)->describe(1) == files.folder / "images, image 1");
}

TEST_CASE("IDX images are resized and given channels like any other") {
  const Files files;
  files.open(kImages, kLabels);
  job::DataSetSpec spec = files.spec();
  spec.channels = 3;
  spec.image_size = 4;
  CHECK(open_data_set(spec)->shape() == ImageShape{3, 4, 4});
}

TEST_CASE("a wrong magic number is reported in the file's own terms") {
  const Files files;
  check_error(ErrorKind::data, "images: the magic number is 0x00000801, wanted 0x00000803",
              [&] { files.open(kLabels, kLabels); });
  check_error(ErrorKind::data, "labels: the magic number is 0x3c68746d, wanted 0x00000801",
              [&] { files.open(kImages, "<html></html>"); });
  check_error(ErrorKind::data, "labels: the file ends within its header", [&] { files.open(kImages, ""); });
}

TEST_CASE("sizes that do not fit are refused without taking the memory that a header promises") {
  const Files files;
  check_error(ErrorKind::data, "images: the header promises 12 bytes, the file has 11",
              [&] { files.open(kImages.substr(0, kImages.size() - 1), kLabels); });
  check_error(ErrorKind::data, "images: the file has more than the 12 bytes of its header",
              [&] { files.open(kImages + "x", kLabels); });
  check_error(ErrorKind::data, "has 2 labels", [&] { files.open(make_idx({1, 2, 3}, "abcdef"), kLabels); });
  check_error(ErrorKind::data, "the header promises 4000000000 bytes, the file has 3", [&] {
    files.open(make_idx({1000000, 50, 80}, "abc"), kLabels);
  });
  check_error(ErrorKind::data, "dimension 2 of the header is 60000", [&] {
    files.open(make_idx({60000, 60000, 60000}, "abc"), kLabels);
  });
  check_error(ErrorKind::data, "dimension 0 of the header is 0", [&] {
    files.open(make_idx({0, 2, 3}, ""), kLabels);
  });
}

TEST_CASE("a damaged gzip stream is not mistaken for a wrong file") {
  const Files files;
  const std::string packed = gzip(make_idx({2, 2, 300}, std::string(1200, 'a')));
  check_error(ErrorKind::data, "images: the gzip stream is truncated",
              [&] { files.open(packed.substr(0, packed.size() - 9), kLabels); });
  std::string flipped = packed;
  flipped[flipped.size() - 6] = static_cast<char>(flipped[flipped.size() - 6] ^ 1);  // in the checksum
  check_error(ErrorKind::data, "images: broken gzip stream: incorrect data check",
              [&] { files.open(flipped, kLabels); });
}

TEST_CASE("gzip streams one after the other are one, and zeros may fill up the file behind them") {
  const Files files;
  const std::string in_three = gzip(kImages.substr(0, 3)) + gzip("") + gzip(kImages.substr(3));
  const std::string zeros(1000, '\0');
  check_images(*files.open(in_three, gzip(kLabels)));
  check_images(*files.open(in_three + zeros, gzip(kLabels) + '\0'));
}

TEST_CASE("other data after a gzip stream is refused") {
  const Files files;
  const std::string zeros(1000, '\0');
  for (const std::string& junk :
       {std::string("x"), std::string("\x1f"), zeros + "x", kImages, zeros + gzip("")})
    check_error(ErrorKind::data, "images: the gzip stream ends, and other data follows from byte ",
                [&] { files.open(gzip(kImages) + junk, kLabels); });
  check_error(ErrorKind::data, "images: the file has more than the 12 bytes of its header",
              [&] { files.open(gzip(kImages) + gzip("x"), kLabels); });
  check_error(ErrorKind::data, "images: the gzip stream is truncated",
              [&] { files.open(gzip(kImages) + gzip("").substr(0, 12), kLabels); });
}

TEST_CASE("a gzip stream that is truncated is refused wherever it ends") {
  const Files files;
  const std::string packed = gzip(kImages);
  for (std::size_t count = 2; count < packed.size(); ++count)
    check_error(ErrorKind::data, "images: the gzip stream is truncated",
                [&] { files.open(packed.substr(0, count), kLabels); });
}

TEST_CASE("a large gzip stream is read piece by piece") {
  const Files files;
  std::string noise;
  for (std::uint32_t i = 0; noise.size() < 2 * 500 * 500; ++i)
    noise += static_cast<char>((i * 2654435761U) >> 13U);
  const auto set = files.open(gzip(make_idx({2, 500, 500}, noise)), kLabels);
  ReadScratch scratch;
  std::string pixels(500 * 500, ' ');
  set->read({.sample = 1}, scratch, reinterpret_cast<std::uint8_t*>(pixels.data()));
  CHECK(pixels == noise.substr(500 * 500));
}

TEST_CASE("a missing file is named") {
  const Files files;
  files.folder.write("labels", kLabels);
  check_error(ErrorKind::missing, files.folder / "images", [&] { open_data_set(files.spec()); });
}

}  // namespace
}  // namespace fleetrun::runtime::idx_test
