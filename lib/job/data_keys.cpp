#include "job/job_keys.h"
#include "job/make_key.h"

namespace fleetrun::job {
namespace {

constexpr double kMostLoaderThreads = 1024;  // per rank; more than any machine has cores for
constexpr double kMostPrefetched = 1024;     // batches that wait in memory

const std::vector<std::string> kStored = {"image_folder", "image_list", "cifar_bin", "idx"};  // not generated

// What holds for the pixels where the job does not say it.
struct PixelDefaults {
  std::string mean, deviation;
};

std::vector<Key> data_set_keys(const Section<DataSetSpec>& set, const PixelDefaults& pixels) {
  const auto with = [](std::vector<std::string> formats) { return Condition{"format", std::move(formats)}; };
  const std::vector<Choice> formats = {
      choice("image_folder", DataFormat::image_folder), choice("image_list", DataFormat::image_list),
      choice("cifar_bin", DataFormat::cifar_bin), choice("idx", DataFormat::idx),
      choice("synthetic", DataFormat::synthetic)};
  const std::vector<Choice> augments = {choice("none", Augment::none),
                                        choice("crop_flip", Augment::crop_flip),
                                        choice("random_resized_crop", Augment::random_resized_crop),
                                        choice("resize_crop", Augment::resize_crop)};
  return {
      make_key("format", set(&DataSetSpec::format), "how the samples are stored",
               {.choices = formats, .required = true}),
      make_path_key(
          "path", set(&DataSetSpec::path),
          "image_folder: folder with a folder of JPEG or PNG files for each class; cifar_bin: CIFAR-10 "
          "binary batches",
          {.required = true, .only_with = with({"image_folder", "cifar_bin"})}),
      make_path_key("list", set(&DataSetSpec::list), "file with a line `path label` for each image",
                    {.required = true, .only_with = with({"image_list"})}),
      make_path_key("root", set(&DataSetSpec::root), "folder where the paths of the list start",
                    {.required = true, .only_with = with({"image_list"})}),
      make_path_key("images", set(&DataSetSpec::images), "IDX file of the images, gzip too",
                    {.required = true, .only_with = with({"idx"})}),
      make_path_key("labels", set(&DataSetSpec::labels), "IDX file of the labels, gzip too",
                    {.required = true, .only_with = with({"idx"})}),
      make_key("samples", set(&DataSetSpec::samples), "generated samples",
               {.range = Range::from(1), .required = true, .only_with = with({"synthetic"})}),
      make_key(
          "shape", set(&DataSetSpec::shape), "[channels, height, width] of a generated sample",
          {.range = Range::between(1, kLargestSide), .required = true, .only_with = with({"synthetic"})}),
      make_key(
          "classes", set(&DataSetSpec::classes), "classes of the generated samples",
          {.range = Range::between(2, kMostClasses), .required = true, .only_with = with({"synthetic"})}),
      make_key("seed", set(&DataSetSpec::seed), "of the generated samples",
               {.only_with = with({"synthetic"})}),
      make_key("image_size", set(&DataSetSpec::image_size), "side in pixels that images are brought to",
               {.range = Range::between(1, kLargestSide),
                .only_with = with(kStored),
                .absent = "the size of the images when all agree, otherwise 224"}),
      make_key("channels", set(&DataSetSpec::channels), "3 for colour, 1 for grey; images are converted",
               {.range = Range::between(1, 3), .only_with = with(kStored), .absent = "3, for idx 1"}),
      make_key(
          "augment", set(&DataSetSpec::augment),
          "change of each image; crop_flip: pad by 4, crop at random, flip half of them; "
          "random_resized_crop: a random "
          "part of 8 to 100 %, resized, half of them flipped; resize_crop: short side to 256, the middle",
          {.choices = augments}),
      make_key("mean", set(&DataSetSpec::mean), "taken from each pixel (0..255) of a channel",
               {.least_items = 1, .absent = pixels.mean}),
      make_key("std", set(&DataSetSpec::deviation), "divides each pixel of a channel after that",
               {.range = Range::above(0), .least_items = 1, .absent = pixels.deviation}),
  };
}

}  // namespace

Key data_keys() {
  const Section<DataSpec> data{[](JobSpec& spec) -> DataSpec& { return spec.data; }};
  const Section<DataSetSpec> train{[](JobSpec& spec) -> DataSetSpec& { return spec.data.train; }};
  const Section<DataSetSpec> test{[](JobSpec& spec) -> DataSetSpec& {
    return spec.data.test ? *spec.data.test : spec.data.test.emplace();
  }};
  Key test_keys = make_object_key("test", "the samples to evaluate on",
                                  data_set_keys(test, {"as data.train has it", "as data.train has it"}),
                                  {.absent = "none, no evaluation"});
  test_keys.present = [](const JobSpec& spec) { return spec.data.test.has_value(); };
  return make_object_key(
      "data", "the samples",
      {
          make_object_key("train", "the samples to train on",
                          data_set_keys(train, {"0 for each channel",
                                                "255 for each channel, so that pixels become 0..1"}),
                          {.required = true}),
          std::move(test_keys),
          make_key("batch_size", data(&DataSpec::batch_size), "samples of one step, per rank",
                   {.range = Range::from(1)}),
          make_key("shuffle", data(&DataSpec::shuffle),
                   "a new order each epoch, from train.seed and the epoch"),
          make_key("uneven", data(&DataSpec::uneven),
                   "so that all ranks see the same number of batches: repeat random samples, or leave the "
                   "rest out",
                   {.choices = {choice("pad", Uneven::pad), choice("drop", Uneven::drop)}}),
          make_key("loader_threads", data(&DataSpec::loader_threads),
                   "threads that read and decode, per rank",
                   {.range = Range::between(1, kMostLoaderThreads)}),
          make_key("prefetch", data(&DataSpec::prefetch), "batches ready ahead",
                   {.range = Range::between(1, kMostPrefetched)}),
          make_key("bad_sample", data(&DataSpec::bad_sample),
                   "fail: a file that cannot be decoded ends the run; skip: it is left out with a warning",
                   {.choices = {choice("fail", BadSample::fail), choice("skip", BadSample::skip)}}),
          make_key("use_dali", data(&DataSpec::use_dali), "decode on the GPU",
                   {.support = Support::default_only}),
      },
      {.required = true});
}

}  // namespace fleetrun::job
