// A model file answers as the test pass of the training that wrote it.
#include "runtime/predict/predictor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "comm/collective/solo.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/data/expect_error.h"
#include "runtime/training/trainer/trainer.h"
#include "support/small_training.h"

namespace fleetrun::runtime::predictor_test {
namespace {

constexpr int kImages = 12;
constexpr ModelFacts kFacts = {.input_shape = {3, 32, 32}, .classes = 10};

std::vector<float> images() {
  std::vector<float> values(std::size_t{kImages} * 3 * 32 * 32);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = unit_float(philox(7, 0, i)[0]) - 0.5F;
  return values;
}

// A training on one rank, and the model file that it writes.
struct Trained {
  explicit Trained(job::ModelName name, int batch) {
    job.model.name = name;
    job.data.batch_size = batch;
    job.strategy.cudnn_exhaustive_search = false;  // which takes seconds
    trainer = std::make_unique<Trainer>(job, kFacts, *device, *solo);
    const std::vector<std::int32_t> labels(static_cast<std::size_t>(batch), 3);
    trainer->step({pixels.data(), labels.data()}, 0.01);
  }

  ModelFile model() const {
    const Program& program = trainer->executor().program();
    ModelCard card = make_model_card(job, kFacts, {});
    add_facts_of_programs(card, program, trainer->evaluation_executor().program());
    return {.path = "m",
            .card = card,
            .weights = parse_safetensors(
                format_tensors(read_tensors(weights_of(program), program, trainer->storage())), "m")};
  }

  // Of the test pass, in one batch.
  Score score(const std::vector<std::int32_t>& labels) const {
    trainer->begin_evaluation();
    trainer->evaluate({pixels.data(), labels.data()});
    return trainer->finish_evaluation();
  }

  job::JobSpec job;
  std::unique_ptr<Device> device = make_cpu_device();
  std::unique_ptr<comm::Communicator> solo = comm::make_solo();
  std::vector<float> pixels = images();
  std::unique_ptr<Trainer> trainer;
};

std::vector<float> logits_of(const ModelFile& model, const std::vector<float>& pixels, int batch) {
  Predictor predictor(model, batch);
  std::vector<float> all;
  for (int first = 0; first < kImages; first += batch) {
    const auto some =
        predictor.logits(pixels.data() + std::size_t{3} * 32 * 32 * static_cast<std::size_t>(first));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

float loss_of(std::span<const float> logits, int label) {
  double sum = 0;
  for (const float value : logits) sum += std::exp(static_cast<double>(value));
  return static_cast<float>(std::log(sum) - logits[static_cast<std::size_t>(label)]);
}

TEST_CASE("a model file answers as the test pass of its training") {
  for (const auto name : {job::ModelName::lenet, job::ModelName::resnet20}) {
    const Trained trained(name, kImages);
    std::vector<std::int32_t> labels(kImages);
    const std::vector<float> logits = logits_of(trained.model(), trained.pixels, kImages);
    double loss = 0;
    for (int i = 0; i < kImages; ++i) {
      labels[static_cast<std::size_t>(i)] = i % 10;
      loss += loss_of(std::span(logits).subspan(static_cast<std::size_t>(i) * 10, 10), i % 10);
    }
    CHECK(trained.score(labels).loss == doctest::Approx(loss / kImages).epsilon(1e-6));
  }
}

TEST_CASE("the answer about an image has the same bits in every batch") {
  for (const auto name : {job::ModelName::lenet, job::ModelName::resnet20, job::ModelName::resnet18}) {
    const Trained trained(name, kImages);
    const ModelFile model = trained.model();
    const std::vector<float> alone = logits_of(model, trained.pixels, 1);
    for (const int batch : {3, 4, 12}) {
      CAPTURE(batch);
      CHECK(logits_of(model, trained.pixels, batch) == alone);
    }
  }
}

TEST_CASE("weights of another model are refused by name") {
  const Trained trained(job::ModelName::lenet, kImages);
  ModelFile model = trained.model();
  check_weights(model);
  model.card.model.class_dim = 11;
  check_error(ErrorKind::data, "f2.bias is [10], wanted [11]", [&] { check_weights(model); });
}

}  // namespace
}  // namespace fleetrun::runtime::predictor_test
