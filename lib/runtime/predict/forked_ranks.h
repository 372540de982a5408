// Processes that answer for parts of the images. Each sends its answers through a pipe, in its order.
#pragma once
#include <sys/types.h>

#include <functional>
#include <vector>

#include "base/system/unique_fd.h"
#include "runtime/predict/rank_predictions.h"

namespace fleetrun::runtime {

using SendAnswer = std::function<void(const BatchAnswer&)>;

class ForkedRanks {
 public:
  // Starts `count` processes; in each of them `work(rank, send)` runs. They end with this process. Throws Error(os).
  ForkedRanks(int count, const std::function<void(int rank, const SendAnswer& send)>& work);
  ~ForkedRanks();  // ends those that still run
  ForkedRanks(const ForkedRanks&) = delete;
  ForkedRanks& operator=(const ForkedRanks&) = delete;

  // The next answer of a rank. Throws the Error that ended its work, and Error(os) when the process ended without one.
  BatchAnswer next(int rank);

 private:
  struct Rank {
    pid_t pid = -1;
    UniqueFd answers;
  };

  [[noreturn]] void tell_end(int rank);

  std::vector<Rank> ranks_;
};

}  // namespace fleetrun::runtime
