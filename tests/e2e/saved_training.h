// A small training with checkpoints in output/saved, for tests that interrupt it.
#pragma once
#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "e2e/launcher.h"

namespace fleetrun::saved_training {

namespace fs = std::filesystem;

// Everything that has a state: dropout, shuffling, augmentation, velocity, running statistics, a schedule.
inline const std::string kJob = R"({
  "model": {"name": "MODEL"},
  "data": {"train": {"format": "synthetic", "samples": 96, "shape": [3, 12, 12], "classes": 4, "augment": "crop_flip"},
           "batch_size": 8, "loader_threads": 1},
  "optimizer": {"name": "momentum", "learning_rate": {"name": "cosine", "base": 0.05, "warmup_steps": 3}},
  "train": {"epochs": 6, "log_every": 1},
  "checkpoint": {"dir": "saved"}
})";

struct Training : Launch {
  explicit Training(const std::string& model) {
    folder.write("job.json", std::regex_replace(kJob, std::regex("MODEL"), model));
  }
};

inline ChildResult train(const Launch& launch, const Words& overrides = {}, int ranks = 2) {
  Words words = {"--nproc_per_node=" + std::to_string(ranks), "job.json"};
  words.insert(words.end(), overrides.begin(), overrides.end());
  return launch.run_words(words);
}

inline std::vector<std::string> saved(const Launch& launch) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(launch.folder / "output/saved", none))
    if (entry.path().filename() != ".lock") names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// The files of the newest checkpoint, by name.
inline std::map<std::string, std::string> newest(const Launch& launch) {
  std::map<std::string, std::string> files;
  const std::string folder = "output/saved/" + saved(launch).back();
  for (const auto& entry : fs::directory_iterator(launch.folder / folder))
    if (entry.path().filename() != "history.csv")  // its rows have times
      files[entry.path().filename()] = launch.folder.read(folder + "/" + entry.path().filename().string());
  return files;
}

// Sends the launcher a signal as soon as rank 0 has written these words.
inline void kill_when(const Launch& launch, const std::string& words, int signal,
                      const Words& overrides = {}) {
  Words command = {FLEETRUN_BINARY, "--nproc_per_node=2", "job.json"};
  command.insert(command.end(), overrides.begin(), overrides.end());
  ChildProcess child(command, launch.options());
  REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), words); }, 60s));
  child.send(signal);
  child.wait();
}

}  // namespace fleetrun::saved_training
