// What a device does by itself, as its maker's tools see it: the kernels of an op, copies and fills.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace fleetrun::runtime {

struct Activity {
  std::string name;                       // "volta_sgemm_128x64_nn", or "copy" and "fill"
  std::string category;                   // "kernel", "copy" or "fill"
  std::int64_t start_ns = 0, end_ns = 0;  // on the clock of monotonic_ns()
};

class ActivityWatch {
 public:
  virtual ~ActivityWatch() = default;
  virtual void begin() = 0;
  // What was begun and done since begin(). The device has done all work of the run.
  virtual std::vector<Activity> end() = 0;
};

}  // namespace fleetrun::runtime
