#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/data/formats/formats.h"
#include "runtime/data/formats/read_bytes.h"

namespace fleetrun::runtime {
namespace {

namespace fs = std::filesystem;

// Krizhevsky, "The CIFAR-10 dataset": a label byte, then 32x32 red, green and blue bytes.
constexpr int kSide = 32;
constexpr std::size_t kPlane = std::size_t{kSide} * kSide;
constexpr std::size_t kRecord = 1 + 3 * kPlane;  // bytes
constexpr int kClasses = 10;

std::vector<std::string> class_names() {
  return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
}

std::vector<std::string> batch_files(const std::string& path, DataUse use) {
  std::error_code problem;
  if (!fs::is_directory(path, problem)) return {path};
  std::vector<std::string> all, training, test;
  fs::directory_iterator entries(path, problem);
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
    const std::string name = entries->path().filename().string();
    if (!name.ends_with(".bin")) continue;
    all.push_back(entries->path().string());
    if (name.starts_with("data_batch_")) training.push_back(all.back());
    if (name == "test_batch.bin") test.push_back(all.back());
  }
  if (problem) throw file_error(problem.value(), "reading data set folder", path);
  if (all.empty()) throw Error(ErrorKind::data, fmt::format("data set folder {} has no .bin files", path));
  if (use == DataUse::evaluation && !test.empty()) return test;
  std::vector<std::string>& files = training.empty() ? all : training;
  std::sort(files.begin(), files.end());
  return files;
}

struct BatchFile {
  std::string path;
  UniqueFd fd;
  int first = 0;  // its first sample
};

class CifarBin : public WholeImageSet {
 public:
  CifarBin(DataSetFacts facts, std::vector<BatchFile> files)
      : WholeImageSet(std::move(facts)), files_(std::move(files)) {}

  std::string describe(int sample) const override {
    const BatchFile& file = file_of(sample);
    return fmt::format("{}, image {}", file.path, sample - file.first);
  }
  void read_stored(int sample, std::size_t limit, std::vector<std::uint8_t>& bytes) const override {
    const BatchFile& file = file_of(sample);
    bytes.resize(kRecord);
    const std::size_t offset = static_cast<std::size_t>(sample - file.first) * kRecord;
    if (read_at(file.fd, file.path, offset, kRecord, bytes.data()) != kRecord)
      throw Error(ErrorKind::data, fmt::format("{} became shorter while in use", describe(sample)));
    bytes.resize(std::min(limit, kRecord));
  }

 protected:
  void load(const Framing& framing, ReadScratch& scratch) const override {
    read_stored(framing.sample, kRecord, scratch.file);
    scratch.image.reset({3, kSide, kSide});
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t i = 0; i < kPlane; ++i)
        scratch.image.pixels[3 * i + c] = scratch.file[1 + c * kPlane + i];
  }

 private:
  const BatchFile& file_of(int sample) const {
    const auto after =
        std::upper_bound(files_.begin(), files_.end(), sample,
                         [](int wanted, const BatchFile& file) { return wanted < file.first; });
    return *std::prev(after);
  }

  std::vector<BatchFile> files_;
};

// Appends the labels of one file.
BatchFile read_labels(const std::string& path, std::vector<std::int32_t>& labels) {
  OpenedFile opened = open_data_file(path);
  if (opened.bytes == 0 || opened.bytes % kRecord != 0)
    throw Error(ErrorKind::data,
                fmt::format("{} has {} bytes, wanted a multiple of {} (a label and 32x32x3 bytes)", path,
                            opened.bytes, kRecord));
  BatchFile file{path, std::move(opened.fd), static_cast<int>(labels.size())};
  for (std::size_t i = 0; i < opened.bytes / kRecord; ++i) {
    std::uint8_t label = 0;
    if (read_at(file.fd, path, i * kRecord, 1, &label) != 1 || label >= kClasses)
      throw Error(ErrorKind::data, fmt::format("{}, image {}: the label is {}, must be 0 to {}", path, i,
                                               label, kClasses - 1));
    labels.push_back(label);
  }
  return file;
}

}  // namespace

std::unique_ptr<DataSet> open_cifar_bin(const job::DataSetSpec& spec, DataUse use) {
  DataSetFacts facts;
  std::vector<BatchFile> files;
  for (const std::string& path : batch_files(spec.path, use))
    files.push_back(read_labels(path, facts.labels));
  const int side = spec.image_size.value_or(kSide);
  facts.shape = {spec.channels, side, side};
  facts.classes = kClasses;
  facts.class_names = class_names();
  return std::make_unique<CifarBin>(std::move(facts), std::move(files));
}

}  // namespace fleetrun::runtime
