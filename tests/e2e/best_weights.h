// A small training with checkpoint.keep_best, for tests of its best weights.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "e2e/saved_training.h"

namespace fleetrun::best_weights {

// Its learning rate is so high that the loss of the test samples falls and rises.
inline const std::string kJob = R"({
  "model": {"name": "mlp", "hidden": [16]},
  "data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 6, 6], "classes": 4},
           "test": {"format": "synthetic", "samples": 64, "shape": [1, 6, 6], "classes": 4, "seed": 1},
           "batch_size": 8, "loader_threads": 1},
  "optimizer": {"name": "momentum", "learning_rate": 0.3},
  "train": {"epochs": 8, "log_every": 100},
  "checkpoint": {"dir": "saved", "keep": 1, "keep_best": "loss"}
})";

struct Training : Launch {
  Training() { folder.write("job.json", kJob); }

  std::string best() const { return folder.read("output/best.safetensors"); }
};

inline ChildResult train(const Launch& launch, const Words& overrides = {}, int ranks = 2) {
  return saved_training::train(launch, overrides, ranks);
}

inline nlohmann::json report_of(const Launch& launch) {
  return nlohmann::json::parse(launch.folder.read("log/train.json"));
}

}  // namespace fleetrun::best_weights
