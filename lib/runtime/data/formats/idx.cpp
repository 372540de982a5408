#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/data/formats/formats.h"
#include "runtime/data/formats/idx_file.h"

namespace fleetrun::runtime {
namespace {

class Idx : public WholeImageSet {
 public:
  Idx(DataSetFacts facts, std::string path, IdxFile images)
      : WholeImageSet(std::move(facts)),
        path_(std::move(path)),
        images_(std::move(images)),
        own_({1, images_.dimensions[1], images_.dimensions[2]}) {}

  std::string describe(int sample) const override { return fmt::format("{}, image {}", path_, sample); }
  void read_stored(int sample, std::size_t limit, std::vector<std::uint8_t>& bytes) const override {
    bytes.assign(pixels_of(sample), pixels_of(sample) + std::min(limit, own_.elements()));
  }

 protected:
  void load(const Framing& framing, ReadScratch& scratch) const override {
    const std::uint8_t* from = pixels_of(framing.sample);
    scratch.image.reset(own_);
    scratch.image.pixels.assign(from, from + own_.elements());
  }

 private:
  const std::uint8_t* pixels_of(int sample) const {
    return images_.content.data() + static_cast<std::size_t>(sample) * own_.elements();
  }

  std::string path_;
  IdxFile images_;
  ImageShape own_;  // in the file
};

}  // namespace

std::unique_ptr<DataSet> open_idx(const job::DataSetSpec& spec) {
  const IdxFile labels = read_idx_file(spec.labels, 1);
  IdxFile images = read_idx_file(spec.images, 3);
  if (labels.dimensions[0] != images.dimensions[0])
    throw Error(ErrorKind::data,
                fmt::format("{} has {} labels, {} has {} images; they must agree", spec.labels,
                            labels.dimensions[0], spec.images, images.dimensions[0]));
  check_image_size(spec.images, images.dimensions[2], images.dimensions[1]);
  DataSetFacts facts;
  facts.labels.assign(labels.content.begin(), labels.content.end());
  facts.classes = 1 + *std::max_element(facts.labels.begin(), facts.labels.end());
  facts.shape = {spec.channels, spec.image_size.value_or(images.dimensions[1]),
                 spec.image_size.value_or(images.dimensions[2])};
  return std::make_unique<Idx>(std::move(facts), spec.images, std::move(images));
}

}  // namespace fleetrun::runtime
