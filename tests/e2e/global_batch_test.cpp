// train.global_batch: the same training on any number of ranks.
#include "e2e/launcher.h"
#include "e2e/weight_files.h"

namespace fleetrun::global_batch_test {
namespace {

const char* const kJob = R"({
  "model": {"name": "lenet"},
  "data": {"train": {"format": "synthetic", "samples": 500, "shape": [1, 12, 12], "classes": 4},
           "test": {"format": "synthetic", "samples": 50, "shape": [1, 12, 12], "classes": 4}},
  "optimizer": {"name": "momentum", "learning_rate": {"name": "cosine", "base": 0.02, "warmup_steps": 3}},
  "train": {"epochs": 2, "global_batch": 64, "threads": 1},
  "strategy": {"cudnn_exhaustive_search": false}
})";

struct Training : Launch {
  Training() { folder.write("job.json", kJob); }

  ChildResult run(int ranks, Words overrides = {}) const {
    Words words = {"--nproc_per_node=" + std::to_string(ranks), "--device=cpu", "job.json"};
    words.insert(words.end(), overrides.begin(), overrides.end());
    return run_words(words);
  }
  std::string weights() const { return folder.read("output/model.safetensors"); }
};

TEST_CASE("1, 2, 3 and 4 ranks with a global batch of 64 take the same steps to the same weights") {
  const Training alone;
  REQUIRE(alone.run(1).code == 0);
  const nlohmann::json expected = alone.report()["train"];
  CHECK(expected["steps"] == 2 * 8);
  for (const int ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    const Training training;
    const ChildResult result = training.run(ranks);
    REQUIRE_MESSAGE(result.code == 0, result.err);
    CHECK(testing::relative_difference(alone.weights(), training.weights()) < 1e-5);
    const nlohmann::json train = training.report()["train"];
    CHECK(train["steps"] == expected["steps"]);
    CHECK(train["test_accuracy"] == expected["test_accuracy"]);
    const double images = train["images_per_second"].get<double>() * train["train_seconds"].get<double>();
    CHECK(images == doctest::Approx(16 * 64));
  }
}

TEST_CASE("4, then 3, then again 4 ranks give the weights of one rank, with the same schedule") {
  const std::string schedule =
      R"(optimizer.learning_rate={"name": "piecewise", "boundaries": [3, 10], "values": [0.02, 0.01, 0.005]})";
  const Training alone, changing;
  REQUIRE(alone.run(1, {schedule, "train.max_steps=24"}).code == 0);
  for (const auto& [ranks, steps] : {std::pair(4, 5), std::pair(3, 13), std::pair(4, 24)}) {
    const ChildResult part =
        changing.run(ranks, {schedule, "checkpoint.dir=saved", "train.max_steps=" + std::to_string(steps)});
    REQUIRE_MESSAGE(part.code == 0, part.err);
    CHECK_FALSE(contains(part.out, "dealt anew"));
    if (steps > 5) CHECK(contains(part.out, " with 64 samples in each step now, "));
  }
  CHECK(testing::relative_difference(alone.weights(), changing.weights()) < 1e-5);
}

TEST_CASE("more ranks than samples in a step are refused before a rank starts") {
  const Training training;
  const ChildResult result = training.run(3, {"train.global_batch=2"});
  CHECK(result.code == 78);
  CHECK_MESSAGE(contains(result.err,
                         "train.global_batch is 2, wanted at least 3: each of the 3 ranks needs a "
                         "sample in every step"),
                result.err);
  CHECK_FALSE(std::filesystem::exists(training.folder / "log/workerlog.0"));
}

}  // namespace
}  // namespace fleetrun::global_batch_test
