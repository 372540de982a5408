// Batches of bytes, which the device normalises, beside the numbers that the loader makes of the same bytes.
#include <doctest/doctest.h>

#include "cuda/device/device_training.h"
#include "runtime/passes/feed_pixels.h"
#include "support/run_program.h"

namespace fleetrun::runtime::fed_pixels_test {
namespace {

using device_training::job_of, device_training::kBatch, device_training::kFacts, device_training::kPixels,
    device_training::kSide;

constexpr ImageShape kShape = {3, kSide, kSide};

job::DataSetSpec some_set() {
  job::DataSetSpec set;
  set.mean = {120.5, 3, 0};
  set.deviation = {51, 255, 0.7};
  return set;
}

// The same images as bytes with their views, and as the numbers that the loader's threads make of them.
struct FedBatch {
  std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(kBatch * kPixels);
  std::vector<ViewNumbers> views;
  std::vector<float> images = std::vector<float>(kBatch * kPixels);
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(kBatch);

  explicit FedBatch(int step, const job::DataSetSpec& set = some_set()) {
    const auto stream = static_cast<std::uint64_t>(step);
    const Normalisation normalisation = make_normalisation(set.mean, set.deviation, kShape.channels);
    std::vector<std::uint8_t> row;
    for (std::size_t i = 0; i < pixels.size(); ++i)
      pixels[i] = static_cast<std::uint8_t>(philox(1, stream, i)[0]);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = static_cast<std::int32_t>(i % 10);
      const auto draw = philox(2, stream, i);
      const View view = {.top = static_cast<int>(draw[0] % 9) - 4,
                         .left = static_cast<int>(draw[1] % 9) - 4,
                         .flip = draw[2] % 2 == 1};
      views.push_back(numbers_of(view));
      write_planes(&pixels[i * kPixels], kShape, view, normalisation, row, &images[i * kPixels]);
    }
  }

  // The place has no sample, as at the end of an evaluation.
  void empty(std::size_t place) {
    views[place] = kNoImage;
    labels[place] = -1;
    std::fill_n(&images[place * kPixels], kPixels, 0.0F);
  }

  BatchView in(ImageForm form) const {
    if (form == ImageForm::numbers) return {.images = images.data(), .labels = labels.data()};
    return {.labels = labels.data(), .pixels = pixels.data(), .views = views.data()};
  }
};

// An image of the type, made from pixels; `wide` has its numbers as f32.
struct PixelProgram {
  Program program;
  ValueId wide = kNone;

  explicit PixelProgram(const std::string& dtype) {
    Builder builder(program, all_ops());
    wide = builder.feed("image", {kBatch, 3, kSide, kSide});
    if (dtype != "f32") {
      const ValueId narrow = builder.op("narrow", "cast", {{"x", wide}}, {{"dtype", dtype}});
      wide = builder.op("wide", "cast", {{"x", narrow}}, {{"dtype", std::string("f32")}});
    }
    feed_pixels(program, all_ops(), some_set());
  }
};

TEST_CASE("the device makes the numbers of the loader from bytes, bit by bit, in each type") {
  FedBatch batch(1);
  batch.empty(5);
  const auto device = test::make_test_device();
  std::vector<std::string> types = {"f32"};
  for (const DType type : device->narrow_types()) types.emplace_back(describe(type));
  for (const std::string& dtype : types) {
    CAPTURE(dtype);
    const PixelProgram made(dtype);
    test::ProgramRun run(made.program, all_ops(), *device);
    CHECK(run.program().value(run.program().find("image")).dtype == parse_dtype(dtype));
    run.set(run.program().find("pixels"), batch.pixels);
    run.set(run.program().find("view"), batch.views);
    run.run();
    const test::Floats got = run.get(made.wide);
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      REQUIRE(got[i] == rounded_to(*parse_dtype(dtype), batch.images[i]));
    }
  }
}

struct Trained {
  std::uint64_t weights = 0;
  double loss = 0;  // of an evaluation
};

Trained train_on(ImageForm form, const job::JobSpec& job) {
  Trained trained;
  device_training::with_trainer(job,
                                [&](Trainer& trainer, comm::Communicator&) {
                                  trainer.share_parameters();
                                  for (int step = 0; step < 3; ++step)
                                    trainer.step(FedBatch(step, job.data.train).in(form), 0.05);
                                  trained.weights = trainer.fingerprint();
                                  FedBatch last(7, *job.data.test);
                                  last.empty(2);
                                  trainer.begin_evaluation();
                                  trainer.evaluate(last.in(form));
                                  trained.loss = trainer.finish_evaluation().loss;
                                },
                                {.feeds = form});
  return trained;
}

TEST_CASE("a training and its evaluations on bytes leave the bits of those on numbers") {
  for (const auto& type : device_training::all_types()) {
    CAPTURE(type.has_value());
    job::JobSpec job = job_of(job::ModelName::lenet, type);
    job.data.test = some_set();
    job.data.test->mean = {1, 2, 3};
    const Trained numbers = train_on(ImageForm::numbers, job), pixels = train_on(ImageForm::pixels, job);
    CHECK(pixels.weights == numbers.weights);
    CHECK(pixels.loss == numbers.loss);
  }
}

}  // namespace
}  // namespace fleetrun::runtime::fed_pixels_test
