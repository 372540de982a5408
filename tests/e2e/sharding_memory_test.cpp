// What a rank of a real training of ResNet-50 keeps with strategy.sharding, as log/train.json has it.
#include <cstdint>

#include "e2e/launcher.h"

namespace fleetrun::sharding_memory_test {
namespace {

// Images and batches are small: what sharding divides depends on the network only.
constexpr const char* kJob = R"({
  "model": {"name": "resnet50"},
  "data": {"train": {"format": "synthetic", "samples": 64, "shape": [3, 64, 64], "classes": 102}, "batch_size": 2},
  "train": {"max_steps": 1},
  "strategy": {"cudnn_exhaustive_search": false}
})";

struct Kept {
  double parameters = 0, gradients = 0;  // bytes; with the parameters also their optimizer states
};

Kept kept_by_rank(const Words& settings, int ranks, const char* job = kJob) {
  Launch launch;
  launch.folder.write("job.json", job);
  Words words = {"--nproc_per_node=" + std::to_string(ranks), "--device=cpu", "job.json"};
  words.insert(words.end(), settings.begin(), settings.end());
  const ChildResult result = launch.run_words(words);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const nlohmann::json train = nlohmann::json::parse(launch.folder.read("log/train.json"));
  return {train["parameter_bytes"], train["gradient_bytes"]};
}

Words stage(int number) {
  return {"strategy.sharding=true", "strategy.sharding_configs.stage=" + std::to_string(number)};
}

TEST_CASE("ResNet-50: a rank keeps 1/ranks of what sharding divides, within a tenth") {
  const Kept plain = kept_by_rank({}, 2);
  const double weights = plain.parameters / 2;  // the velocities of momentum are the other half
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    const auto is_share = [&](double bytes, double of) {
      return bytes == doctest::Approx(of / ranks).epsilon(0.1);
    };
    const Kept first = kept_by_rank(stage(1), ranks), second = kept_by_rank(stage(2), ranks),
               third = kept_by_rank(stage(3), ranks);
    CHECK(is_share(first.parameters - weights, weights));
    CHECK(first.gradients == doctest::Approx(plain.gradients).epsilon(0.01));
    CHECK(is_share(second.parameters - weights, weights));
    CHECK(is_share(second.gradients, plain.gradients));
    CHECK(is_share(third.parameters, plain.parameters));
    CHECK(is_share(third.gradients, plain.gradients));
  }
}

TEST_CASE("ResNet-50 with Adam: both of its states are divided") {
  const Kept plain = kept_by_rank({"optimizer.name=adam"}, 2);
  Words sharded = stage(3);
  sharded.emplace_back("optimizer.name=adam");
  CHECK(kept_by_rank(sharded, 2).parameters == doctest::Approx(plain.parameters / 2).epsilon(0.1));
}

TEST_CASE("the report has the memory of the rank that keeps the most") {
  const char* const job = R"({
  "model": {"name": "mlp", "hidden": [64, 64]},
  "data": {"train": {"format": "synthetic", "samples": 16, "shape": [3, 32, 32], "classes": 10}, "batch_size": 2},
  "optimizer": {"name": "sgd"},
  "train": {"max_steps": 1}
})";
  constexpr double kLargest = 3.0 * 32 * 32 * 64 * sizeof(float);  // nine tenths of all parameters
  const Kept kept = kept_by_rank(stage(3), 4, job);
  CHECK(kept.parameters >= kLargest);
  CHECK(kept.gradients >= kLargest);
}

}  // namespace
}  // namespace fleetrun::sharding_memory_test
