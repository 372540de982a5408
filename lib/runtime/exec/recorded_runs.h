// Runs of a program that a device repeats from a recording (a CUDA graph), so that the host gives it one piece of work instead of
// one for each op. The first run with its feeds at some places is an ordinary one, the second is recorded.
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
  // `why_not`: why runs are not recorded; empty where they are.
  RecordedRuns(Streams& streams, std::string why_not) : streams_(streams), why_not_(std::move(why_not)) {}

  // Has the device do one run. `give` gives its ops to the compute stream, `feeds` says where it finds what it reads.
  void run(const std::vector<void*>& feeds, const std::function<void()>& give);

  void forget() { by_feeds_.clear(); }  // values lie elsewhere from now on

  const std::string& why_not() const { return why_not_; }
  std::int64_t replays() const { return replays_; }

 private:
  void record(std::unique_ptr<Recording>& recording, const std::function<void()>& give);

  Streams& streams_;
  std::string why_not_;
  std::map<std::vector<void*>, std::unique_ptr<Recording>> by_feeds_;  // null after the first run
  std::int64_t replays_ = 0;
};

}  // namespace fleetrun::runtime
