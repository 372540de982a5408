#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "runtime/data/formats.h"
#include "runtime/data/read_bytes.h"

namespace fleetrun::runtime {
namespace {

namespace fs = std::filesystem;

constexpr int kUsualSide = 224;             // pixels; JOB.md's default for mixed sizes
constexpr std::size_t kHeaderBytes = 4096;  // enough for a header without an embedded thumbnail
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 28;  // 256 MiB, what kMaxPixels take at four channels

struct ImageFiles {
  std::vector<std::string> class_names;
  std::vector<std::string> paths;
  std::vector<std::int32_t> labels;
};

bool is_image_name(const std::string& name) {
  std::string ending = fs::path(name).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

// The names in a folder that are folders (or are not), hidden ones left out, in byte order.
std::vector<std::string> names_in(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code problem;
  fs::directory_iterator entries(folder, problem);
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
    std::error_code ignored;  // an entry that cannot be looked at is no folder
    std::string name = entries->path().filename().string();
    if (name.front() != '.' && entries->is_directory(ignored) == folders) names.push_back(std::move(name));
  }
  if (problem) throw file_error(problem.value(), "reading data set folder", folder);
  std::sort(names.begin(), names.end());
  return names;
}

void add_class(const std::string& root, const std::string& name, ImageFiles& files) {
  const std::string folder = root + "/" + name;
  const auto label = static_cast<std::int32_t>(files.class_names.size());
  const std::size_t before = files.paths.size();
  for (const std::string& file : names_in(folder, false))
    if (is_image_name(file)) files.paths.push_back(folder + "/" + file);
  if (files.paths.size() == before)
    throw Error(ErrorKind::data, fmt::format("class folder {} has no .jpg, .jpeg or .png files", folder));
  files.labels.resize(files.paths.size(), label);
  files.class_names.push_back(name);
}

ImageFiles find_images(std::string root) {
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  ImageFiles files;
  for (const std::string& name : names_in(root, true)) add_class(root, name, files);
  if (files.class_names.empty()) {
    const bool empty = names_in(root, false).empty();
    throw Error(ErrorKind::data,
                fmt::format("data set folder {} {}", root, empty ? "is empty" : "has no class folders"),
                "images are expected as <class>/*.jpg, *.jpeg or *.png, one folder for each class");
  }
  return files;
}

// What the header of a file says; nothing when it is broken, which is told when the sample is read.
std::optional<ImageShape> probe(const std::string& path, ReadScratch& scratch) {
  read_start(path, kHeaderBytes, scratch.file);
  std::optional<ImageShape> shape = scratch.decoder.probe(scratch.file);
  if (!shape && scratch.file.size() == kHeaderBytes) {
    read_whole(path, kMaxFileBytes, scratch.file);
    shape = scratch.decoder.probe(scratch.file);
  }
  if (shape && shape->width > kMaxPixels / std::max(shape->height, 1)) return std::nullopt;
  return shape;
}

// The size that all images share, or the usual square when they differ; stops at the first that does.
ImageShape common_shape(const std::vector<std::string>& paths, int channels) {
  ReadScratch scratch;
  std::optional<ImageShape> common;
  for (const std::string& path : paths) {
    const std::optional<ImageShape> shape = probe(path, scratch);
    if (!shape) continue;
    if (!common) common = shape;
    if (shape->width != common->width || shape->height != common->height)
      return {channels, kUsualSide, kUsualSide};
  }
  if (!common) return {channels, kUsualSide, kUsualSide};
  return {channels, common->height, common->width};
}

class ImageFolder : public DataSet {
 public:
  ImageFolder(DataSetFacts facts, std::vector<std::string> paths)
      : DataSet(std::move(facts)), paths_(std::move(paths)) {}

  void read(int sample, ReadScratch& scratch, std::uint8_t* pixels) const override {
    const std::string& path = paths_.at(static_cast<std::size_t>(sample));
    read_whole(path, kMaxFileBytes, scratch.file);
    scratch.decoder.decode(scratch.file, path, scratch.image);
    fit_image(scratch.image, shape(), scratch.fit, pixels);
  }

  std::string describe(int sample) const override { return paths_.at(static_cast<std::size_t>(sample)); }

 private:
  std::vector<std::string> paths_;
};

}  // namespace

std::unique_ptr<DataSet> open_image_folder(const job::DataSetSpec& spec) {
  ImageFiles files = find_images(spec.path);
  DataSetFacts facts;
  facts.classes = static_cast<int>(files.class_names.size());
  facts.class_names = std::move(files.class_names);
  facts.labels = std::move(files.labels);
  facts.shape = spec.image_size ? ImageShape{spec.channels, *spec.image_size, *spec.image_size}
                                : common_shape(files.paths, spec.channels);
  return std::make_unique<ImageFolder>(std::move(facts), std::move(files.paths));
}

}  // namespace fleetrun::runtime
