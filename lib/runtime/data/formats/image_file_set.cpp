#include "runtime/data/formats/image_file_set.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "base/text/printable.h"
#include "runtime/data/formats/read_bytes.h"

namespace fleetrun::runtime {
namespace {

constexpr int kUsualSide = 224;             // pixels; JOB.md's default for mixed sizes
constexpr std::size_t kHeaderBytes = 4096;  // enough for a header without an embedded thumbnail
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 28;  // 256 MiB, what kMaxPixels take at four channels

// What the header of a file says.
std::optional<ImageShape> probe_file(const std::string& path, ReadScratch& scratch) {
  read_start(path, kHeaderBytes, scratch.file);
  std::optional<ImageShape> shape = scratch.decoder.probe(scratch.file);
  if (!shape && scratch.file.size() == kHeaderBytes) {
    read_whole(path, kMaxFileBytes, scratch.file);
    shape = scratch.decoder.probe(scratch.file);
  }
  if (shape && shape->width > kMaxPixels / std::max(shape->height, 1)) return std::nullopt;
  return shape;
}

// Nothing when the file cannot be read or is broken; reading the sample reports that.
std::optional<ImageShape> probe(const std::string& path, ReadScratch& scratch) {
  try {
    return probe_file(path, scratch);
  } catch (const Error& problem) {
    if (problem.kind() == ErrorKind::os) throw;
    return std::nullopt;
  }
}

// Throws the error of the first image. Call it if no image tells its size.
[[noreturn]] void refuse_all(const std::vector<std::string>& paths, ReadScratch& scratch) {
  const std::string all = plural(paths.size(), "image");
  try {
    read_whole(paths.front(), kMaxFileBytes, scratch.file);
    scratch.decoder.decode(scratch.file, paths.front(), {{}, {1, kUsualSide, kUsualSide}}, scratch.image);
  } catch (const Error& problem) {
    throw Error(problem.kind(), fmt::format("none of {} can be read; the first: {}", all, problem.message()));
  }
  throw Error(ErrorKind::data, fmt::format("none of {} tells its size; the first is {}", all, paths.front()));
}

// The size that all images share, or the usual square when they differ; stops at the first that does.
void find_common_shape(const std::vector<std::string>& paths, int channels, DataSetFacts& facts) {
  facts.shape = {channels, kUsualSide, kUsualSide};
  ReadScratch scratch;
  std::optional<ImageShape> common;
  std::string_view first;
  for (const std::string& path : paths) {
    const std::optional<ImageShape> shape = probe(path, scratch);
    if (!shape) continue;
    if (!common) {
      common = shape;
      first = path;
    }
    if (shape->width == common->width && shape->height == common->height) continue;
    facts.unlike = fmt::format("{} is {}x{} and {} {}x{}", printable(first), common->width, common->height,
                               printable(path), shape->width, shape->height);
    return;
  }
  if (!common && !paths.empty()) refuse_all(paths, scratch);
  if (common) facts.shape = {channels, common->height, common->width};
}

class ImageFileSet : public WholeImageSet {
 public:
  ImageFileSet(DataSetFacts facts, std::vector<std::string> paths, std::vector<std::string> names)
      : WholeImageSet(std::move(facts)), paths_(std::move(paths)), names_(std::move(names)) {}

  std::string describe(int sample) const override {
    return (names_.empty() ? paths_ : names_).at(static_cast<std::size_t>(sample));
  }
  std::string source_of(int sample) const override { return paths_.at(static_cast<std::size_t>(sample)); }
  void read_stored(int sample, std::size_t limit, std::vector<std::uint8_t>& bytes) const override {
    read_start(paths_.at(static_cast<std::size_t>(sample)), limit, bytes);
  }

 protected:
  void load(const Framing& framing, ReadScratch& scratch) const override {
    const std::string& path = paths_.at(static_cast<std::size_t>(framing.sample));
    read_whole(path, kMaxFileBytes, scratch.file);
    scratch.decoder.decode(scratch.file, describe(framing.sample), {framing, shape()}, scratch.image);
  }

 private:
  std::vector<std::string> paths_, names_;
};

}  // namespace

bool is_image_name(const std::string& name) {
  std::string ending = std::filesystem::path(name).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  constexpr std::array<std::string_view, 7> kEndings = {".jpg", ".jpeg", ".jpe", ".jfif",
                                                        ".png", ".webp", ".bmp"};
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

void find_shape(const std::vector<std::string>& paths, const job::DataSetSpec& spec, DataSetFacts& facts) {
  if (spec.image_size)
    facts.shape = {spec.channels, *spec.image_size, *spec.image_size};
  else
    find_common_shape(paths, spec.channels, facts);
}

std::unique_ptr<DataSet> make_image_file_set(DataSetFacts facts, std::vector<std::string> paths,
                                             std::vector<std::string> names) {
  return std::make_unique<ImageFileSet>(std::move(facts), std::move(paths), std::move(names));
}

}  // namespace fleetrun::runtime
