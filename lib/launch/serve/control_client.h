// Asking the fleetrun that uses a log folder, through its socket there.
#pragma once
#include <chrono>
#include <string>

#include "base/system/unique_fd.h"

namespace fleetrun::launch {

class ControlClient {
 public:
  explicit ControlClient(std::string folder) : folder_(std::move(folder)) {}

  // Sends a question, one line without its line end, and returns the answer. Waits while a run begins or ends.
  // Throws Error(missing) when no run uses the folder, Error(permission) when the run belongs to another user, and
  // Error(io) when the run does not answer.
  std::string ask(const std::string& request);

  // After ask(): waits at most this long for the run that answered. True: it is over.
  bool is_over_within(std::chrono::milliseconds time);

 private:
  UniqueFd connect(std::chrono::steady_clock::time_point deadline) const;

  std::string folder_;
  UniqueFd socket_;
};

}  // namespace fleetrun::launch
