// Writes checkpoints on a thread of its own, one after the other, while the training goes on.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error/error.h"
#include "base/run/timeline.h"
#include "runtime/checkpoint/checkpoint_folder.h"

namespace fleetrun::runtime {

// How one save ended.
struct SaveResult {
  TrainingState state;
  std::string path;              // of the checkpoint; empty when there is none
  std::optional<Error> problem;  // why not
  double seconds = 0;
};

class CheckpointWriter {
 public:
  // `timeline`: gets a span of each save, outlives the writer; null: nobody watches.
  explicit CheckpointWriter(CheckpointFolder& folder, Timeline* timeline = nullptr);
  ~CheckpointWriter();  // waits for the last save
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Waits while an earlier snapshot is being written: at most one more lies in memory.
  void write(Snapshot snapshot);

  // What ended since the last call.
  std::vector<SaveResult> take_results();

  // Waits until all is written, for this long at most; true: it is.
  bool wait_until_idle(std::chrono::milliseconds limit);

 private:
  SaveResult save_watched();
  void live();

  CheckpointFolder& folder_;
  Timeline* timeline_;
  Timeline::Label label_ = 0;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::optional<Snapshot> next_;  // until it is written
  std::vector<SaveResult> results_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace fleetrun::runtime
