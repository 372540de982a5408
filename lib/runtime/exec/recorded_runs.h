// Runs of a program that a device repeats from a recording (a CUDA graph), so that the host gives it one piece of work instead of
// one for each op. The first run with its feeds at some places is an ordinary one, the second is recorded. If a run has collectives, all
// ranks record it or none does: NCCL wants it so (https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/cudagraph.html).
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/kernels/streams.h"

namespace fleetrun::runtime {

class RecordedRuns {
 public:
  // Whether all ranks say yes. Every rank asks as often as the others.
  using Agree = std::function<bool(bool mine)>;

  // `why_not`: why runs are not recorded; empty where they are. `agree`: null where a run has no collectives.
  RecordedRuns(Streams& streams, std::string why_not, Agree agree = nullptr)
      : streams_(streams), why_not_(std::move(why_not)), agree_(std::move(agree)) {}

  // Has the device do one run. `give` gives its ops to the compute stream, `feeds` says where it finds what it reads.
  void run(const std::vector<void*>& feeds, const std::function<void()>& give);

  // If values have moved on any rank, the next runs are recorded anew. All ranks call it after the same run.
  void forget_if(bool moved);

  const std::string& why_not() const { return why_not_; }
  std::int64_t replays() const { return replays_; }

 private:
  bool all_ranks(bool mine) const { return agree_ ? agree_(mine) : mine; }
  void begin();
  bool record(std::unique_ptr<Recording>& recording, const std::function<void()>& give);
  std::unique_ptr<Recording> recording_of(const std::function<void()>& give);
  void end_after_failure();
  void stop(const std::string& why);

  Streams& streams_;
  std::string why_not_;
  const Agree agree_;
  bool begun_ = false;
  std::map<std::vector<void*>, std::unique_ptr<Recording>> by_feeds_;  // null after the first run
  std::int64_t replays_ = 0;
};

}  // namespace fleetrun::runtime
