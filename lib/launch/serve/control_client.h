// Asking the fleetrun that uses a log folder, through its socket there.
#pragma once
#include <chrono>
#include <string>

#include "base/system/unique_fd.h"

namespace fleetrun::launch {

class ControlClient {
 public:
  explicit ControlClient(std::string folder) : folder_(std::move(folder)) {}

  // One question, a line without its end. Waits for a run that begins or ends at this moment.
  // Throws Error(missing) when no run uses the folder, Error(permission) when it is another user's, Error(io) when it
  // does not answer.
  std::string ask(const std::string& request);

  // After ask(): whether the run that answered is over within this time.
  bool is_over_within(std::chrono::milliseconds time);

 private:
  UniqueFd connect(std::chrono::steady_clock::time_point deadline) const;

  std::string folder_;
  UniqueFd socket_;
};

}  // namespace fleetrun::launch
