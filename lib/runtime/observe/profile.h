// Where the time of some training steps went, by kind of op (train.profile).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/exec/executor.h"

namespace fleetrun::runtime {

// What is summed up from one moment on.
struct ProfileMark {
  std::int64_t time_ns = 0;                  // monotonic
  std::int64_t data_ns = 0;                  // waiting for batches
  std::int64_t step_ns = 0;                  // in steps
  std::vector<std::int64_t> op_ns, op_runs;  // of the executor
};

// On average of the steps: an op may not run in each of them.
struct KindOfOp {
  std::string type;
  double ops = 0;            // of a step
  double seconds = 0;        // of a step
  double alone_seconds = 0;  // what the same ops take one by one, with their inputs in the caches
  double bytes = 0;          // that they read and write in a step, if the caches hold nothing
};

struct Profile {
  int steps = 0;
  double seconds = 0;           // from the end of the step before to the end of the last, per step
  double data_seconds = 0;      // waiting for batches, per step
  double idle_seconds = 0;      // in steps, but in no op, per step; below 0 where several ops ran at once
  std::vector<KindOfOp> kinds;  // the longest first
};

// `alone`: Executor::time_alone.
Profile make_profile(const Program& program, const ProfileMark& begin, const ProfileMark& end, int steps,
                     const std::vector<OpTime>& alone);

// A table. "of limit" is the time alone over that in the step: 1.00 is an op that loses nothing to cold caches and neighbours.
std::string describe(const Profile& profile);

}  // namespace fleetrun::runtime
