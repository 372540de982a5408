#include "job/keys/job_keys.h"
#include "job/keys/make_key.h"

namespace fleetrun::job {
namespace {

constexpr double kMostLoaderThreads = 1024;  // per rank; more than any machine has cores for
constexpr double kMostPrefetched = 1024;     // batches that wait in memory

const std::vector<std::string> kStored = {"image_folder", "image_list", "cifar_bin", "idx"};  // not generated

// What holds for the pixels where the job does not say it.
struct PixelDefaults {
  std::string mean, deviation;
};

// NOLINTNEXTLINE(readability-function-size): a table
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
      make_key("format", set(&DataSetSpec::format),
               "format of the samples; synthetic: fleetrun generates them",
               {.choices = formats, .required = true}),
      make_path_key(
          "path", set(&DataSetSpec::path),
          "image_folder: a folder with one subfolder of JPEG, PNG, WebP or BMP files per class, and the names of the subfolders, sorted as text, have the labels 0, 1, 2, ...; cifar_bin: CIFAR-10 binary batches",
          {.required = true, .only_with = with({"image_folder", "cifar_bin"})}),
      make_path_key(
          "list", set(&DataSetSpec::list),
          "file with one line `path label` per image; a line that begins with # is a comment, unless it names a file",
          {.required = true, .only_with = with({"image_list"})}),
      make_path_key("root", set(&DataSetSpec::root), "folder that the paths in the list are relative to",
                    {.required = true, .only_with = with({"image_list"})}),
      make_path_key("images", set(&DataSetSpec::images), "IDX file of the images, plain or gzip",
                    {.required = true, .only_with = with({"idx"})}),
      make_path_key("labels", set(&DataSetSpec::labels), "IDX file of the labels, plain or gzip",
                    {.required = true, .only_with = with({"idx"})}),
      make_key("samples", set(&DataSetSpec::samples), "number of generated samples",
               {.range = Range::from(1), .required = true, .only_with = with({"synthetic"})}),
      make_key(
          "shape", set(&DataSetSpec::shape),
          "[channels, height, width] of a generated sample; 3 channels or 1",
          {.range = Range::between(1, kLargestSide), .required = true, .only_with = with({"synthetic"})}),
      make_key(
          "classes", set(&DataSetSpec::classes), "number of classes of the generated samples",
          {.range = Range::between(2, kMostClasses), .required = true, .only_with = with({"synthetic"})}),
      make_key("seed", set(&DataSetSpec::seed), "random seed of the generated samples",
               {.only_with = with({"synthetic"})}),
      make_key("image_size", set(&DataSetSpec::image_size),
               "height and width of every image in pixels, after resizing",
               {.range = Range::between(1, kLargestSide),
                .only_with = with(kStored),
                .absent = "size of the images if all have the same size, otherwise 224"}),
      make_key("channels", set(&DataSetSpec::channels),
               "3 for colour or 1 for grey, but not 2; fleetrun converts the images",
               {.range = Range::between(1, 3), .only_with = with(kStored), .absent = "3; idx: 1"}),
      make_key(
          "augment", set(&DataSetSpec::augment),
          "augmentation; none: resizes the whole image; crop_flip: also pads by 4 pixels, crops at random, "
          "flips half of the images; random_resized_crop: crops a random part with 8 to 100 % of the area "
          "and resizes it, flips half of the images; resize_crop: resizes the short side to 256/224 of "
          "image_size, crops the centre",
          {.choices = augments}),
      make_key("mean", set(&DataSetSpec::mean),
               "value to subtract from each pixel (0 to 255), one per channel",
               {.least_items = 1, .absent = pixels.mean}),
      make_key("std", set(&DataSetSpec::deviation),
               "divisor of each pixel after the subtraction, one per channel",
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
                                  data_set_keys(test, {"same as data.train", "same as data.train"}),
                                  {.absent = "none, no evaluation"});
  test_keys.present = [](const JobSpec& spec) { return spec.data.test.has_value(); };
  return make_object_key(
      "data", "the samples",
      {
          make_object_key("train", "the samples to train on",
                          data_set_keys(train, {"0 for each channel",
                                                "255 for each channel, which scales pixels to 0..1"}),
                          {.required = true}),
          std::move(test_keys),
          make_key(
              "split", data(&DataSpec::split),
              "share of the images of data.train that is set aside for evaluations and not trained on; "
              "train.seed draws it from each class; symbolic links to one file stay together; only without data.test",
              {.range = {.least = 0, .most = 1, .above_least = true, .below_most = true}, .absent = "none"}),
          make_key("batch_size", data(&DataSpec::batch_size), "samples per rank in each step",
                   {.range = Range::from(1),
                    .excludes = "train.global_batch",
                    .absent = "32 without train.global_batch"}),
          make_key("shuffle", data(&DataSpec::shuffle),
                   "shuffles the samples before each epoch, seeded by train.seed and the epoch"),
          make_key(
              "sampler", data(&DataSpec::sampler),
              "samples of an epoch; all: each sample once; balanced: as many in total, equally many of each class",
              {.choices = {choice("all", Sampler::all), choice(kBalanced, Sampler::balanced)}}),
          make_key(
              "class_weights", data(&DataSpec::class_weights),
              "weights of the classes in the training loss, in their order or by name; balanced: samples / "
              "(classes * samples of the class)",
              {.range = Range::above(0), .absent = "off"}),
          make_key(
              "uneven", data(&DataSpec::uneven),
              "gives all ranks the same number of batches; pad: repeats random samples; drop: leaves samples out",
              {.choices = {choice("pad", Uneven::pad), choice("drop", Uneven::drop)}}),
          make_key("loader_threads", data(&DataSpec::loader_threads),
                   "threads per rank that read and decode samples",
                   {.range = Range::between(1, kMostLoaderThreads)}),
          make_key("prefetch", data(&DataSpec::prefetch), "batches to load ahead, per rank",
                   {.range = Range::between(1, kMostPrefetched)}),
          make_key(
              "bad_sample", data(&DataSpec::bad_sample),
              "what to do with files that fleetrun cannot decode; fail: end the run; skip: skip the file with a warning, at most 64 files in a row",
              {.choices = {choice("fail", BadSample::fail), choice("skip", BadSample::skip)}}),
          make_key("use_dali", data(&DataSpec::use_dali),
                   "decodes JPEG files on the GPU, with NVIDIA's library nvJPEG"),
      },
      {.required = true});
}

}  // namespace fleetrun::job
