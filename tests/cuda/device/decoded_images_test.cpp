// JPEG files that the device decodes (data.use_dali), beside those that the CPU decodes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/error/error.h"
#include "runtime/data/decode/average_blocks.h"
#include "runtime/data/decode/image_decoder.h"
#include "runtime/data/expect_error.h"
#include "runtime/data/image_files.h"
#include "runtime/training/setup/data_sets.h"
#include "support/leave_out.h"
#include "support/temporary_folder.h"
#include "support/test_device.h"

namespace fleetrun::runtime::decoded_images_test {
namespace {

constexpr double kMeanDifference =
    1.5;  // grey levels: libraries round otherwise, and mix colours of neighbours otherwise

// Why the test's device decodes nothing here; "": it does. The one on the host always does.
std::string why_not(Device& device) {
  const Environment environment = Environment::of_this_process();
  if (environment.get_or("FLEETRUN_TEST_DEVICE", "cpu") == "cpu") return "the test's device is the CPU";
  if (environment.get("FLEETRUN_NVJPEG")) return "";
  try {
    device.make_jpeg_decoder();
    return "";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config) throw;
    return error.message();
  }
}

std::span<const std::uint8_t> bytes_of(const std::string& content) {
  return {reinterpret_cast<const std::uint8_t*>(content.data()), content.size()};
}

// On the CPU without a device.
Image decode(const std::string& content, const Wanted& wanted, Device* device = nullptr) {
  ImageDecoder decoder;
  JpegCounts counts;
  if (device != nullptr) decoder.decode_jpegs_on(device->make_jpeg_decoder(), counts);
  Image image;
  decoder.decode(bytes_of(content), "cat.jpg", wanted, image);
  return image;
}

std::vector<std::uint8_t> shown(const std::string& content, const Wanted& wanted, Device* device) {
  const Image image = decode(content, wanted, device);
  FitScratch scratch;
  std::vector<std::uint8_t> planes(wanted.shape.elements());
  fit_image(image, region_of(wanted.framing, image.source_width, image.source_height, wanted.shape),
            wanted.shape, scratch, planes.data());
  return planes;
}

double mean_difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  REQUIRE(a.size() == b.size());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return static_cast<double>(sum) / static_cast<double>(a.size());
}

// A picture at its own size.
Wanted whole(const Image& image) { return {.framing = {}, .shape = image.shape}; }

TEST_CASE("the device decodes JPEG files to the pixels that the CPU decodes, but for some grey levels") {
  const auto device = test::make_test_device();
  if (const std::string why = why_not(*device); !why.empty()) LEAVE_OUT(why);
  for (const int channels : {1, 3}) {
    const Image noise = noisy_image(channels, 61, 83), gradient = gradient_image(channels, 61, 83);
    CHECK(mean_difference(decode(make_jpeg(noise), whole(noise), device.get()).pixels,
                          decode(make_jpeg(noise), whole(noise)).pixels) < kMeanDifference);
    for (const int colours : {TJSAMP_422, TJSAMP_420, TJSAMP_440}) {
      const std::string jpeg = make_jpeg(gradient, 0, colours);
      CHECK(mean_difference(decode(jpeg, whole(gradient), device.get()).pixels, gradient.pixels) <
            kMeanDifference);
    }
  }
}

TEST_CASE("each sample shows the same part of its picture, whoever decodes it") {
  const auto device = test::make_test_device();
  if (const std::string why = why_not(*device); !why.empty()) LEAVE_OUT(why);
  const std::string jpeg = make_jpeg(gradient_image(3, 250, 333));
  const std::string turned = with_orientation(jpeg, 6, true);
  for (const ImageShape shape : {ImageShape{3, 224, 224}, ImageShape{3, 40, 56}, ImageShape{1, 25, 25}})
    for (const auto augment :
         {job::Augment::none, job::Augment::random_resized_crop, job::Augment::resize_crop})
      for (int sample = 0; sample < 5; ++sample) {
        const Wanted wanted = {{.augment = augment, .sample = sample}, shape};
        CAPTURE(sample);
        for (const std::string& file : {jpeg, turned})
          CHECK(mean_difference(shown(file, wanted, device.get()), shown(file, wanted, nullptr)) <
                kMeanDifference);
      }
}

TEST_CASE("the device makes a picture smaller by the means of squares") {
  const auto device = test::make_test_device();
  if (const std::string why = why_not(*device); !why.empty()) LEAVE_OUT(why);
  for (const int channels : {1, 3}) {
    const Image noise = noisy_image(channels, 101, 149);
    const std::string jpeg = make_jpeg(noise);
    for (const int reduction : {2, 4, 8}) {
      Image expected = decode(jpeg, whole(noise), device.get());
      average_blocks(reduction, expected);
      const Image found = decode(jpeg, {{}, {channels, 101 / reduction, 149 / reduction}}, device.get());
      CHECK(found.shape == expected.shape);
      CHECK(found.pixels == expected.pixels);
    }
  }
}

TEST_CASE("the CPU decodes what the device leaves to it, to the same bits") {
  const auto device = test::make_test_device();
  if (const std::string why = why_not(*device); !why.empty()) LEAVE_OUT(why);
  const Image small = gradient_image(3, 40, 50), large = gradient_image(1, 2100, 2100);
  const std::vector<std::string> files = {make_jpeg(small, TJFLAG_PROGRESSIVE),
                                          make_jpeg(gradient_image(4, 40, 50)), make_png(small),
                                          make_jpeg(large)};
  for (const std::string& file : files) {
    const Wanted wanted = {{}, {3, 30, 30}};
    CHECK(decode(file, wanted, device.get()).pixels == decode(file, wanted).pixels);
  }
}

TEST_CASE("a damaged file is found with the words of the CPU, whatever part of it is shown") {
  const auto device = test::make_test_device();
  if (const std::string why = why_not(*device); !why.empty()) LEAVE_OUT(why);
  const std::string jpeg = make_jpeg(noisy_image(3, 200, 200));
  Wanted wanted = {{.augment = job::Augment::random_resized_crop, .to_the_end = true}, {3, 32, 32}};
  for (const double share : {0.3, 0.9}) {
    const std::string cut =
        jpeg.substr(0, static_cast<std::size_t>(share * static_cast<double>(jpeg.size())));
    check_error(ErrorKind::data, "cat.jpg: broken JPEG file: Premature end of JPEG file",
                [&] { decode(cut, wanted, device.get()); });
  }
}

TEST_CASE("the CPU decodes a picture for which the memory of the device's decoder does not suffice") {
  if (!Environment::of_this_process().get("FLEETRUN_NVJPEG"))
    LEAVE_OUT("only nvJPEG on the host can want so much memory");
  const auto device = test::make_test_device();
  ::setenv("FLEETRUN_ON_HOST_NVJPEG_BYTES", "20", 1);  // of a pixel
  const Image large = gradient_image(1, 1900, 2000), small = gradient_image(1, 400, 500);
  ImageDecoder decoder;
  JpegCounts counts;
  decoder.decode_jpegs_on(device->make_jpeg_decoder(), counts);
  Image found;
  for (const Image& image : {small, large, small})
    decoder.decode(bytes_of(make_jpeg(image)), "cat.jpg", whole(image), found);
  ::unsetenv("FLEETRUN_ON_HOST_NVJPEG_BYTES");
  CHECK(counts.by_device.load() == 2);
  CHECK(counts.by_cpu.load() == 1);
  CHECK(mean_difference(found.pixels, small.pixels) < kMeanDifference);
}

// A folder of pictures, and a job that trains on them.
struct PictureJob {
  TemporaryFolder folder;
  job::JobSpec spec;

  explicit PictureJob(int pictures) {
    for (int i = 0; i < pictures; ++i)
      folder.write("images/" + std::string(i % 2 == 0 ? "cat/" : "dog/") + std::to_string(i) + ".jpg",
                   make_jpeg(gradient_image(3, 60 + 7 * i, 90 - 5 * i)));
    spec.data.train.format = job::DataFormat::image_folder;
    spec.data.train.path = folder.path() + "/images";
    spec.data.train.image_size = 24;
    spec.data.train.augment = job::Augment::random_resized_crop;
    spec.data.batch_size = 4;
    spec.data.use_dali = true;
  }
};

TEST_CASE("the threads of a loader decode batches on the device") {
  const auto device = test::make_test_device();
  if (const std::string why = why_not(*device); !why.empty()) LEAVE_OUT(why);
  PictureJob job(10);
  const RankEnv env;
  const DataSets data(job.spec.data, job.spec.train.seed);
  Loaders on_device(data, job.spec, env, *device, nullptr);
  job.spec.data.use_dali = false;
  Loaders on_cpu(data, job.spec, env, *device, nullptr);
  for (int epoch = 0; epoch < 2; ++epoch) {
    on_device.train.start_epoch(epoch);
    on_cpu.train.start_epoch(epoch);
    for (const Batch* of_cpu = on_cpu.train.next(); of_cpu != nullptr; of_cpu = on_cpu.train.next()) {
      const Batch* of_device = on_device.train.next();
      REQUIRE(of_device != nullptr);
      CHECK(std::equal(of_cpu->labels, of_cpu->labels + 4, of_device->labels));
      const std::size_t bytes = 4 * data.train->shape().elements();
      CHECK(mean_difference({of_cpu->pixels, of_cpu->pixels + bytes},
                            {of_device->pixels, of_device->pixels + bytes}) < kMeanDifference);
    }
  }
  CHECK(on_device.train.jpegs().by_device.load() > 0);
  CHECK(on_device.train.jpegs().by_cpu.load() == 0);
  CHECK(on_cpu.train.jpegs().by_device.load() == 0);
}

TEST_CASE("a device that has no decoder says so before a batch is read") {
  PictureJob job(4);
  const auto cpu = make_cpu_device();
  const DataSets data(job.spec.data, job.spec.train.seed);
  check_error(ErrorKind::config,
              "data.use_dali: found true, but the device is CPU, and only a GPU decodes images",
              [&] { Loaders(data, job.spec, RankEnv(), *cpu, nullptr); });
}

}  // namespace
}  // namespace fleetrun::runtime::decoded_images_test
