#include "runtime/data/formats/data_set.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "job/spec/data_set_facts.h"
#include "runtime/data/formats/formats.h"

namespace fleetrun::runtime {
namespace {

std::string describe(const ImageShape& shape) {
  return fmt::format("[{},{},{}]", shape.channels, shape.height, shape.width);
}

// " (a.png is 8x8 and b.png 20x12)"; "": the images are alike, or the job sets their size.
std::string describe_unlike(const DataSet& set) {
  return set.unlike().empty() ? "" : fmt::format(" ({})", set.unlike());
}

}  // namespace

void WholeImageSet::read(const Framing& framing, ReadScratch& scratch, std::uint8_t* planes) const {
  load(framing, scratch);
  const Image& image = scratch.image;
  fit_image(image, region_of(framing, image.source_width, image.source_height, shape()), shape(), scratch.fit,
            planes);
}

namespace {

std::unique_ptr<DataSet> open(const job::DataSetSpec& spec, const std::vector<std::string>& known,
                              DataUse use) {
  if (const int channels = job::channels_of(spec); !job::is_colour_or_grey(channels))
    throw Error(ErrorKind::config,
                fmt::format("a data set has {}, wanted {}", plural(channels, "channel"), job::kColourOrGrey));
  switch (spec.format) {
    case job::DataFormat::image_folder:
      return open_image_folder(spec, known);
    case job::DataFormat::cifar_bin:
      return open_cifar_bin(spec, use);
    case job::DataFormat::idx:
      return open_idx(spec);
    case job::DataFormat::synthetic:
      return open_synthetic(spec);
    case job::DataFormat::image_list:
      break;
  }
  return open_image_list(spec);
}

}  // namespace

std::unique_ptr<DataSet> open_data_set(const job::DataSetSpec& spec) {
  return open(spec, {}, DataUse::training);
}

std::unique_ptr<DataSet> open_test_set(const job::DataSetSpec& spec, const std::vector<std::string>& known) {
  return open(spec, known, DataUse::evaluation);
}

void check_same_kind(const DataSet& train, const DataSet& test) {
  if (!(train.shape() == test.shape()))
    throw Error(ErrorKind::data,
                fmt::format("data.test has images of {}, data.train of {}; they must agree{}{}",
                            describe(test.shape()), describe(train.shape()), describe_unlike(train),
                            describe_unlike(test)),
                "set image_size and channels of both");
  if (test.classes() > train.classes())
    throw Error(ErrorKind::data,
                fmt::format("data.test has {} classes, data.train only {}", test.classes(), train.classes()));
  const std::vector<std::string>&known = train.class_names(), &found = test.class_names();
  if (known.empty() || found.empty() || known == found) return;
  const auto [ours, theirs] = std::mismatch(known.begin(), known.end(), found.begin(), found.end());
  throw Error(
      ErrorKind::data,
      fmt::format("class {} of data.train is {}, of data.test {}; the names must agree", ours - known.begin(),
                  ours == known.end() ? "missing" : *ours, theirs == found.end() ? "missing" : *theirs));
}

}  // namespace fleetrun::runtime
