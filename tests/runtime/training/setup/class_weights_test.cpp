#include "runtime/training/setup/class_weights.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "runtime/data/expect_error.h"
#include "runtime/graph/backward.h"
#include "runtime/graph/builder.h"
#include "support/run_program.h"
#include "support/run_world.h"

namespace fleetrun::runtime::class_weights_test {
namespace {

// Only its labels and class names are read.
class LabelledSet : public DataSet {
 public:
  LabelledSet(std::vector<std::int32_t> labels, int classes, std::vector<std::string> names = {})
      : DataSet({.shape = {1, 2, 2},
                 .classes = classes,
                 .class_names = std::move(names),
                 .labels = std::move(labels)}) {}
  std::string describe(int sample) const override { return std::to_string(sample); }
  void read(const Framing&, ReadScratch&, std::uint8_t*) const override {}
};

// compute_class_weight("balanced", ...) of scikit-learn 1.7 for the classes 0, 1 and 3.
TEST_CASE("balanced weights are scikit-learn's, and a class without samples has 1") {
  const LabelledSet set({0, 0, 0, 0, 0, 1, 3, 3}, 4);
  const std::vector<float> weights = resolve_class_weights({.balanced = true}, set, 4);
  CHECK(weights[0] == doctest::Approx(0.53333333));
  CHECK(weights[1] == doctest::Approx(2.66666667));
  CHECK(weights[2] == 1);
  CHECK(weights[3] == doctest::Approx(1.33333333));
  CHECK(describe_class_weights(weights, set) == "data.class_weights: from 0.5333 (0) to 2.667 (1)");
}

TEST_CASE("weights by class: in the order of the classes, by name, by number where classes have no names") {
  const LabelledSet named({0, 1}, 2, {"cat", "labrador"}), numbered({0, 1}, 2);
  CHECK(resolve_class_weights({.by_number = {2, 0.5}}, named, 2) == std::vector<float>{2, 0.5});
  CHECK(resolve_class_weights({.by_name = {{"labrador", 3}}}, named, 2) == std::vector<float>{1, 3});
  CHECK(resolve_class_weights({.by_name = {{"1", 3}}}, numbered, 2) == std::vector<float>{1, 3});
  check_error(
      ErrorKind::config,
      "data.class_weights has a weight for \"labradro\", which is not a class of data.train; did you mean \"labrador\"?",
      [&] {
        resolve_class_weights({.by_name = {{"labradro", 3}}}, named, 2);
      });
  check_error(ErrorKind::config, "data.class_weights has 3 weights, wanted 2: one for each class", [&] {
    resolve_class_weights({.by_number = {1, 2, 3}}, named, 2);
  });
}

const std::vector<float> kClassWeights = {0.5F, 4.0F, 1.25F};
const std::vector<float> kLogits = {-0.125, 0.5,  -0.75, -2.5, 1.625, 0.75,  -0.25, 0.125, 0.625,
                                    0.875,  2.75, -1.75, 1.5,  0.75,  3.625, -0.25, 0.75,  0.25};
const std::vector<std::int32_t> kLabels = {0, 2, 1, 0, 0, 1};

struct WeightedLoss {
  double loss = 0;
  std::vector<float> gradient;
  double own_loss = 0;  // of these samples alone
};

// Of the samples from `first` on.
WeightedLoss loss_of(std::size_t first, std::size_t count, comm::Communicator* ranks) {
  const auto device = make_cpu_device();
  const auto samples = static_cast<std::int64_t>(count);
  Program program;
  Builder builder(program, all_ops());
  const ValueId logits = builder.parameter("logits", {samples, 3}, {});
  const ValueId label = builder.feed("label", {samples}, DType::i32);
  const ValueId weight = builder.feed("weight", {samples});
  const ValueId losses = builder
                             .add({.type = "softmax_with_cross_entropy",
                                   .inputs = {{"logits", logits}, {"label", label}},
                                   .name = "e"})
                             .at(1);
  const ValueId loss = builder.op("loss", "weighted_mean", {{"x", losses}, {"weight", weight}});
  append_backward(builder, loss);
  const ValueId gradient = program.of_kind(ValueKind::gradient).front();
  test::ProgramRun run(program, all_ops(), *device);
  SampleWeights weights(static_cast<int>(count));
  weights.set_classes(kClassWeights);
  const float* const of_batch = weights.of_batch(kLabels.data() + first, ranks);
  const auto part = [&](const auto& all, std::size_t width) {
    return std::decay_t<decltype(all)>(all.begin() + static_cast<std::ptrdiff_t>(first * width),
                                       all.begin() + static_cast<std::ptrdiff_t>((first + count) * width));
  };
  run.set(logits, part(kLogits, 3));
  run.set(label, part(kLabels, 1));
  run.set(weight, std::vector<float>(of_batch, of_batch + count));
  run.run();
  const double found = run.get(loss).front();
  return {found, run.get(gradient), found * weights.to_own_loss()};
}

// F.cross_entropy(logits, label, weight=weights) of PyTorch 2 in float64, and its gradient.
constexpr double kLoss = 1.102622804776785;
const std::vector<double> kGradient = {-0.03284583, 0.02553106, 0.00731477,  0.00131154, 0.08114236,
                                       -0.0824539,  0.07665909, -0.2605547,  0.18389561, -0.04038624,
                                       0.03994252,  0.00044372, -0.04178736, 0.00223158, 0.03955578,
                                       0.06932976,  -0.1836352, 0.11430545};

TEST_CASE("the weighted loss of a batch and its gradient are PyTorch's") {
  const WeightedLoss whole = loss_of(0, 6, nullptr);
  CHECK(whole.loss == doctest::Approx(kLoss).epsilon(1e-6));
  REQUIRE(whole.gradient.size() == kGradient.size());
  for (std::size_t i = 0; i < kGradient.size(); ++i)
    CHECK(double{whole.gradient[i]} == doctest::Approx(kGradient[i]).epsilon(1e-5));
}

TEST_CASE("ranks with different numbers of samples get the loss of the whole step") {
  std::array<WeightedLoss, 2> parts;
  testing::run_world(2, [&](comm::Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    parts[rank] = loss_of(rank == 0 ? 0 : 4, rank == 0 ? 4 : 2, &communicator);
  });
  CHECK((parts[0].loss * 4 + parts[1].loss * 2) / 6 == doctest::Approx(kLoss).epsilon(1e-6));
  for (std::size_t i = 0; i < kGradient.size(); ++i) {
    const double found = i < 12 ? parts[0].gradient[i] * 4.0 / 6 : parts[1].gradient[i - 12] * 2.0 / 6;
    CHECK(found == doctest::Approx(kGradient[i]).epsilon(1e-5));
  }
}

TEST_CASE("the own loss of a rank is that of its samples alone, whatever the other ranks have") {
  for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{0, 4}, {4, 2}}) {
    const WeightedLoss alone = loss_of(first, count, nullptr);
    CHECK(alone.own_loss == alone.loss);
    testing::run_world(2, [&, first = first, count = count](comm::Communicator& communicator) {
      const bool is_here = communicator.rank() == 0;
      const WeightedLoss part = is_here ? loss_of(first, count, &communicator) : loss_of(1, 3, &communicator);
      if (is_here) CHECK(part.own_loss == doctest::Approx(alone.loss).epsilon(1e-6));
      if (is_here) CHECK(part.loss != doctest::Approx(alone.loss).epsilon(1e-3));
    });
  }
}

TEST_CASE("a rank without samples in a step has a factor that is a number") {
  testing::run_world(2, [&](comm::Communicator& communicator) {
    SampleWeights weights(2);
    weights.set_classes({2, 6});
    const std::vector<std::int32_t> labels(2, communicator.rank() == 0 ? -1 : 1);
    weights.of_batch(labels.data(), &communicator);
    CHECK(std::isfinite(weights.to_own_loss()));
  });
}

// Of three samples of the classes 0, 0 and 1 the weights are these, but for rounding.
bool gives(const std::vector<float>& classes, const std::vector<float>& wanted,
           comm::Communicator* ranks = nullptr) {
  SampleWeights weights(3);
  weights.set_classes(classes);
  const std::vector<std::int32_t> labels = {0, 0, 1};
  const float* const found = weights.of_batch(labels.data(), ranks);
  return std::equal(wanted.begin(), wanted.end(), found,
                    [](float a, float b) { return std::abs(a - b) < 1e-6F; });
}

TEST_CASE("weights of any size count by their ratios, also where their sum is above the largest float") {
  const std::vector<float> equal = {1, 1, 1}, twice = {0.75F, 0.75F, 1.5F};
  for (const float size : {1.2e-38F, 1e-20F, 1.0F, 1e20F, 1.6e38F}) {
    CAPTURE(size);
    CHECK(gives({size, size}, equal));
    CHECK(gives({size, 2 * size}, twice));
  }
  CHECK(gives({3e38F, 3e38F}, equal));
  testing::run_world(2, [&](comm::Communicator& communicator) {
    const bool is_equal = gives({3e38F, 3e38F}, equal, &communicator);
    CHECK(is_equal);
  });
}

TEST_CASE("a place without a sample has no weight") {
  SampleWeights weights(3);
  weights.set_classes({2, 6});
  const std::vector<std::int32_t> labels = {0, -1, 1};
  const float* const of_batch = weights.of_batch(labels.data(), nullptr);
  CHECK(std::vector<float>(of_batch, of_batch + 3) == std::vector<float>{0.75, 0, 2.25});
}

}  // namespace
}  // namespace fleetrun::runtime::class_weights_test
