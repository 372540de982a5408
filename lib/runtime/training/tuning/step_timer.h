// Times the steps of a job with different settings, in turns, in one process per rank: real steps on real batches. A
// measurement is that of all ranks: the slowest one counts in each turn, and all ranks get the same numbers.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/run/progress_page.h"
#include "comm/make_communicator.h"
#include "job/parse_job.h"
#include "runtime/kernels/device.h"
#include "runtime/training/setup/data_sets.h"
#include "runtime/tune/halving.h"

namespace fleetrun::runtime {

// The job with more words after its file. Throws Error(config) for settings that it cannot have.
using JobWith = std::function<job::ParsedJob(const std::vector<std::string>& settings)>;

// What a rank that tunes works with. All of it outlives its users.
struct TuningRank {
  const JobWith& job_with;
  comm::World& world;
  Device& device;
  ProgressPage& page;
};

// A step of a candidate that is under measurement.
class TimedTraining;

// Facts about the unchanged job.
struct DefaultFacts {
  double step_seconds = 0;
  double build_seconds = 0;  // to prepare a training whose algorithms are known
  double wait_share = 0;     // time that a step waits for its batch, over the time of the step
  double fetch_share = 0;    // time to fetch the loss, over the time of the step
  std::size_t gradient_bytes = 0;
  std::size_t memory_bytes = 0;  // parameters, states, gradients and activations of a rank
};

class StepTimer {
 public:
  // `memory_limit`: bytes of a rank; candidates that need more are not measured. 0: no limit.
  StepTimer(const TuningRank& rank, std::int64_t memory_limit);
  ~StepTimer();

  // Every rank calls it first, and then measure() with the same arguments. Each call prepares its trainings anew, the base, too: one of two
  // equal trainings may have better luck with its place in memory.
  DefaultFacts look_at_default();

  Measured measure(const Candidate& base, const std::vector<Candidate>& candidates, int turns);

  // The same of numbers of loader threads: each turn begins an epoch, and counts the waits for batches. The base has as many as the job says.
  Measured measure_loaders(const Candidate& base, const std::vector<int>& threads, int turns);
  double loader_turn_seconds() const { return pace_.steps_of_loader_turn * pace_.step_seconds; }

  double turn_seconds() const { return pace_.steps_of_turn * pace_.step_seconds; }
  std::int64_t timed_steps() const { return counts_.timed_steps; }

  // The choice between flat and hierarchical all-reduces that the job leaves open, as made for this run.
  const job::StrategySpec& groups() const { return groups_; }

 private:
  using Side = std::unique_ptr<TimedTraining>;

  struct Pace {
    int steps_of_turn = 1;
    int steps_of_loader_turn = 1;
    double step_seconds = 0;  // of the default, with the wait for its batch
  };
  struct Counts {
    int trainings = 0;
    std::int64_t waited_ns = 0;  // for batches
    std::int64_t timed_steps = 0;
  };

  Side make_side(const Candidate& candidate);
  Side make_other(const Candidate& candidate);
  bool is_predicted_too_large(const Candidate& candidate) const;
  double seconds_to_fetch();
  void use_base(const Candidate& base);
  void measure_some(const std::vector<Candidate>& candidates, std::size_t first, std::size_t count, int turns,
                    Measured& found);
  std::vector<std::int64_t> time_turn(const std::vector<TimedTraining*>& sides, int turn);
  std::int64_t time_steps(TimedTraining& side, int steps);
  std::int64_t time_step(TimedTraining& side, Loader& loader);
  std::int64_t time_loaded_steps(int loader_threads);
  Loader& loader_of(const job::JobSpec& job);
  std::int64_t samples_of_step(const job::JobSpec& job) const;  // of all ranks
  std::size_t most_beside_base() const;
  std::int64_t largest(std::int64_t value) const;  // of all ranks

  TuningRank rank_;
  std::int64_t memory_limit_;
  job::StrategySpec groups_;
  std::unique_ptr<DataSets> data_;
  std::map<std::pair<std::int64_t, int>, std::unique_ptr<Loaders>>
      loaders_;  // by samples of a step and number of loader threads
  Side base_;
  Pace pace_;
  Counts counts_;
};

}  // namespace fleetrun::runtime
