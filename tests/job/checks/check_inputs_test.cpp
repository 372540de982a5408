#include "job/checks/check_inputs.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/error/error.h"
#include "support/temporary_folder.h"
#include "support/without_rights.h"

namespace fleetrun::job::check_inputs_test {
namespace {

std::string complaint_about(const JobSpec& spec) {
  try {
    check_inputs(spec);
    return "";
  } catch (const Error& error) {
    return fmt::format("{} {}", error.exit_code(), error.message());
  }
}

JobSpec idx_job(const std::string& images, const std::string& labels) {
  JobSpec spec;
  spec.data.train.format = DataFormat::idx;
  spec.data.train.images = images;
  spec.data.train.labels = labels;
  return spec;
}

JobSpec folder_job(const std::string& path) {
  JobSpec spec;
  spec.data.train.format = DataFormat::image_folder;
  spec.data.train.path = path;
  return spec;
}

TEST_CASE("inputs that are all there raise nothing") {
  const TemporaryFolder folder;
  folder.write("images", "x");
  folder.write("labels", "x");
  std::filesystem::create_directories(folder / "set/cat");
  CHECK(complaint_about(idx_job(folder / "images", folder / "labels")) == "");
  CHECK(complaint_about(folder_job(folder / "set")) == "");
}

TEST_CASE("everything that is missing is named, of the test set too") {
  JobSpec spec = idx_job("/no/images", "/no/labels");
  spec.data.test = DataSetSpec{.format = DataFormat::cifar_bin, .path = "/no/cifar"};
  CHECK(complaint_about(spec) ==
        "66 data.train.images: /no/images: found nothing, wanted a file\n"
        "data.train.labels: /no/labels: found nothing, wanted a file\n"
        "data.test.path: /no/cifar: found nothing, wanted a file or folder");
}

TEST_CASE("pretrained weights may be missing where a training may resume") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "checkpoints");
  JobSpec spec;
  spec.data.train.format = DataFormat::synthetic;
  spec.model.pretrained = "/no/weights";
  spec.checkpoint.dir = folder / "checkpoints";
  const std::string missing = "66 model.pretrained: /no/weights: found nothing, wanted a file";
  CHECK(complaint_about(spec) == missing);
  folder.write("checkpoints/.lock", "");
  CHECK(complaint_about(spec) == missing);
  std::filesystem::create_directory(folder / "checkpoints/one");
  CHECK(complaint_about(spec) == "");
  spec.checkpoint.resume = folder / "checkpoints";
  CHECK(complaint_about(spec) == "");
  spec.checkpoint.resume = "never";
  CHECK(complaint_about(spec) == missing);
}

TEST_CASE("pretrained weights have to be a file") {
  const TemporaryFolder folder;
  folder.write("weights", "x");
  JobSpec spec;
  spec.data.train.format = DataFormat::synthetic;
  spec.model.pretrained = "/no/weights";
  CHECK(complaint_about(spec) == "66 model.pretrained: /no/weights: found nothing, wanted a file");
  spec.model.pretrained = folder.path();
  CHECK(complaint_about(spec) ==
        fmt::format("78 model.pretrained: {}: found a folder, wanted a file", folder.path()));
  spec.model.pretrained = folder / "weights";
  CHECK(complaint_about(spec) == "");
}

TEST_CASE("a file where a folder is wanted, a folder where a file is, a device") {
  const TemporaryFolder folder;
  folder.write("labels", "x");
  CHECK(complaint_about(folder_job(folder / "labels")) ==
        fmt::format("78 data.train.path: {}: found a file, wanted a folder", folder / "labels"));
  CHECK(complaint_about(idx_job(folder.path(), "/dev/zero")) ==
        fmt::format("78 data.train.images: {}: found a folder, wanted a file\n"
                    "data.train.labels: /dev/zero: found a device, pipe or socket, wanted a file",
                    folder.path()));
}

TEST_CASE("an empty folder has no classes, a model with too few outputs is named") {
  const TemporaryFolder folder;
  CHECK(
      complaint_about(folder_job(folder.path())) ==
      fmt::format("65 data.train.path: {}: found no folder in it, wanted one for each class", folder.path()));
  for (const char* name : {"ant", "bee", "cat", ".hidden"}) std::filesystem::create_directory(folder / name);
  JobSpec spec = folder_job(folder.path());
  spec.model.class_dim = 2;
  CHECK(complaint_about(spec) ==
        fmt::format("78 model.class_dim: found 2, wanted at least 3: {} has 3 class folders", folder.path()));
  spec.model.class_dim = 3;
  CHECK(complaint_about(spec) == "");
}

TEST_CASE("an input that may not be read") {
  const TemporaryFolder folder;
  folder.write("images", "x");
  folder.write("labels", "x");
  std::filesystem::create_directories(folder / "locked/set");
  ::chmod(folder.path().c_str(), 0755);
  ::chmod((folder / "images").c_str(), 0000);
  ::chmod((folder / "locked").c_str(), 0000);
  const std::string about_file = fmt::format(
      "77 data.train.images: {}: found one that may not be read (Permission denied (errno 13)), wanted a file",
      folder / "images");
  const std::string about_folder = fmt::format(
      "77 data.train.path: {}: found a folder on the way that may not be searched, wanted a folder",
      folder / "locked/set");
  CHECK(holds_without_rights(
      [&] { return complaint_about(idx_job(folder / "images", folder / "labels")) == about_file; }));
  CHECK(holds_without_rights(
      [&] { return complaint_about(folder_job(folder / "locked/set")) == about_folder; }));
}

}  // namespace
}  // namespace fleetrun::job::check_inputs_test
