#include <doctest/doctest.h>

#include "runtime/data/expect_error.h"
#include "runtime/data/formats/data_set.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::cifar_bin_test {
namespace {

constexpr std::size_t kPlane = 1024;

// One image in one colour.
std::string record(int label, const std::string& colour) {
  std::string bytes(1, static_cast<char>(label));
  for (const char value : colour) bytes += std::string(kPlane, value);
  return bytes;
}

job::DataSetSpec cifar(const std::string& path) {
  job::DataSetSpec spec;
  spec.format = job::DataFormat::cifar_bin;
  spec.path = path;
  return spec;
}

std::vector<std::uint8_t> read(const DataSet& set, int sample) {
  ReadScratch scratch;
  std::vector<std::uint8_t> pixels(set.shape().elements());
  set.read({.sample = sample}, scratch, pixels.data());
  return pixels;
}

TEST_CASE("the label comes first, the planes after it") {
  const TemporaryFolder folder;
  std::string bytes = record(3, "abc") + record(9, "xyz");
  bytes[1 + 5] = 'R';               // red of pixel 5
  bytes[1 + 2 * kPlane + 5] = 'B';  // its blue
  folder.write("one.bin", bytes);
  const auto set = open_data_set(cifar(folder / "one.bin"));
  REQUIRE(set->size() == 2);
  CHECK(set->shape() == ImageShape{3, 32, 32});
  CHECK(set->classes() == 10);
  CHECK(set->class_names().at(3) == "cat");
  CHECK(set->label(0) == 3);
  CHECK(set->label(1) == 9);
  const std::vector<std::uint8_t> pixels = read(*set, 0);
  CHECK(std::string(pixels.begin() + 4, pixels.begin() + 6) == "aR");
  CHECK(std::string(pixels.begin() + 2 * kPlane + 4, pixels.begin() + 2 * kPlane + 6) == "cB");
  CHECK(read(*set, 1)[3071] == 'z');
}

TEST_CASE("a folder's data_batch files are the training set, without them all its .bin files") {
  const TemporaryFolder folder;
  folder.write("test_batch.bin", record(0, "ttt"));
  folder.write("batches.meta.txt", "names");
  CHECK(open_data_set(cifar(folder.path()))->size() == 1);
  folder.write("data_batch_2.bin", record(2, "222"));
  folder.write("data_batch_1.bin", record(1, "111") + record(4, "444"));
  const auto set = open_data_set(cifar(folder.path()));
  REQUIRE(set->size() == 3);
  CHECK(set->label(0) == 1);
  CHECK(set->label(1) == 4);
  CHECK(set->label(2) == 2);
  CHECK(read(*set, 2)[0] == '2');
  CHECK(set->describe(1) == folder / "data_batch_1.bin, image 1");
}

TEST_CASE("a folder's test_batch file is what a model is evaluated on, without it what it is trained on") {
  const TemporaryFolder folder;
  folder.write("data_batch_1.bin", record(1, "111") + record(4, "444"));
  CHECK(open_test_set(cifar(folder.path()))->size() == 2);
  folder.write("test_batch.bin", record(7, "ttt"));
  const auto set = open_test_set(cifar(folder.path()));
  REQUIRE(set->size() == 1);
  CHECK(set->label(0) == 7);
}

TEST_CASE("a short file, a label out of range and a missing file are named") {
  const TemporaryFolder folder;
  folder.write("short.bin", record(1, "abc").substr(0, 3000));
  check_error(ErrorKind::data, folder / "short.bin has 3000 bytes, wanted a multiple of 3073",
              [&] { open_data_set(cifar(folder / "short.bin")); });
  folder.write("empty.bin", "");
  check_error(ErrorKind::data, "empty.bin has 0 bytes", [&] { open_data_set(cifar(folder / "empty.bin")); });
  folder.write("label.bin", record(1, "abc") + record(10, "abc"));
  check_error(ErrorKind::data, "label.bin, image 1: the label is 10, must be 0 to 9",
              [&] { open_data_set(cifar(folder / "label.bin")); });
  check_error(ErrorKind::missing, folder / "none.bin", [&] { open_data_set(cifar(folder / "none.bin")); });
  const TemporaryFolder empty;
  check_error(ErrorKind::data, empty.path() + " has no .bin files",
              [&] { open_data_set(cifar(empty.path())); });
}

TEST_CASE("a file that shrinks while in use is named") {
  const TemporaryFolder folder;
  folder.write("one.bin", record(1, "abc") + record(2, "abc"));
  const auto set = open_data_set(cifar(folder / "one.bin"));
  std::filesystem::resize_file(folder / "one.bin", 3073 + 5);
  CHECK_NOTHROW(read(*set, 0));
  check_error(ErrorKind::data, "one.bin, image 1 became shorter", [&] { read(*set, 1); });
}

}  // namespace
}  // namespace fleetrun::runtime::cifar_bin_test
