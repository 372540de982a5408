// The Chrome trace of all ranks over some steps (output.trace), for chrome://tracing and Perfetto: a process per rank,
// and in it lanes for computation, communication, data and checkpoints. Every rank has one of these and calls the same
// functions in the same order; rank 0 writes the file when the last step is done, all at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>

#include "base/run/rank_env.h"
#include "base/run/timeline.h"
#include "comm/collective/communicator.h"
#include "job/spec/job_spec.h"

namespace fleetrun::runtime {

// Throws Error(create) with the hint when output.trace would replace a file that is not a trace of ours.
void require_own_trace(const job::OutputSpec& output, const std::string& hint);

class Trace {
 public:
  // `out` gets what rank 0 says. All outlive it.
  Trace(const job::OutputSpec& output, const RankEnv& env, comm::Communicator& communicator,
        std::ostream& out);

  Timeline* timeline() const { return timeline_.get(); }  // null: no trace is wanted

  // Before and after step number `step`, counted from 1. A step notes about so many spans.
  void before_step(std::int64_t step, std::size_t spans);
  void after_step(std::int64_t step);
  // At the end of the training, after `steps` steps, which may come before the last step of the trace, or the first.
  void finish(std::int64_t steps);

 private:
  void gather();
  void write(const std::string& events);

  const job::OutputSpec& output_;
  const RankEnv& env_;
  comm::Communicator& communicator_;
  std::ostream& out_;
  std::unique_ptr<Timeline> timeline_;
  std::int64_t first_ = 0, last_ = 0;  // steps of which there are spans
};

// The events of one rank, as members of a JSON array after each other. A lane whose spans overlap takes several rows.
// Times are those of the spans plus `offset_ns`, in microseconds since `start_ns`.
struct TraceClock {
  std::int64_t offset_ns = 0;
  std::int64_t start_ns = 0;
};
std::string trace_events(const Timeline& timeline, int rank, const TraceClock& clock);

}  // namespace fleetrun::runtime
