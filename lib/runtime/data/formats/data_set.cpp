#include "runtime/data/formats/data_set.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "base/text/printable.h"
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

// The first label whose class has another number as its name, such as 0 in {"1", "10", "2"}. Returns nothing if a name is not a number.
std::optional<std::size_t> first_other_number(const std::vector<std::string>& names) {
  std::optional<std::size_t> first;
  for (std::size_t label = 0; label < names.size(); ++label) {
    const std::string& name = names[label];
    std::size_t number = 0;
    const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (problem != std::errc() || end != name.data() + name.size()) return std::nullopt;
    if (number != label && !first) first = label;
  }
  return first;
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

std::string compare_labels(const DataSet& test, std::string_view name, const std::vector<std::string>& known,
                           int classes) {
  const std::vector<std::string>& found = test.class_names();
  if (known.empty() == found.empty()) return "";
  if (known.empty() && test.classes() < classes)
    throw Error(ErrorKind::data,
                fmt::format("{} has {}, the model {} without names: the labels that belong to "
                            "the names are not known",
                            name, plural(test.classes(), "class", "es"), classes),
                "an image_list gives each image its label, and labels count from 0");
  const std::vector<std::string>& names = known.empty() ? found : known;
  if (const auto label = first_other_number(names))
    return fmt::format(
        "warning: fleetrun sorts class folders as text, so folder {} has label {}; {}", names[*label], *label,
        known.empty() ? fmt::format("{} has folders, and the model was trained on numbers as labels", name)
                      : fmt::format("the model was trained on folders, and {} has numbers as labels", name));
  if (!known.empty()) return "";
  return fmt::format(
      "warning: the classes of the model have no names: {} takes label 0 for {} and so on, in the "
      "order of the names",
      name, printable(found.front()));
}

}  // namespace fleetrun::runtime
