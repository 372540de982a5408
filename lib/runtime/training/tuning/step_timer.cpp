#include "runtime/training/tuning/step_timer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/run/timeline.h"
#include "base/system/environment.h"
#include "job/spec/settle_strategy.h"
#include "job/spec/step_share.h"
#include "runtime/compile/build_program.h"
#include "runtime/plan/step_costs.h"
#include "runtime/training/ranks/choose_groups.h"
#include "runtime/training/setup/compute_options.h"
#include "runtime/training/setup/model_facts.h"
#include "runtime/training/trainer/trainer.h"
#include "runtime/training/trainer/training_communicators.h"
#include "runtime/training/tuning/own_thread.h"

namespace fleetrun::runtime {

// One of the trainings in this process. It never sees the same weights again, so any learning rate will do that keeps
// numbers finite.
class TimedTraining {
 public:
  TimedTraining(const Candidate& candidate, const job::JobSpec& job, const ModelFacts& facts,
                const TuningRank& rank, const std::string& name)
      : candidate_(candidate), job_(job) {
    thread_.run([&] {
      communicators_ = std::make_unique<TrainingCommunicators>(job_.strategy, rank.world, rank.device, name);
      trainer_ = std::make_unique<Trainer>(
          job_, facts, rank.device, communicators_->all(),
          TrainerOptions{.threads = job_.train.threads.value_or(rank.world.env.threads),
                         .feeds = image_form_for(rank.device)});
      trainer_->share_parameters();
    });
  }

  // The functions below it are for `work`.
  void on_its_thread(const std::function<void()>& work) { thread_.run(work); }
  void step(const Batch& batch) { trainer_->step(view_of(batch), kLearningRate); }
  void fetch() { (void)trainer_->score(); }

  const Candidate& candidate() const { return candidate_; }
  const job::JobSpec& job() const { return job_; }
  const Trainer& trainer() const { return *trainer_; }
  std::size_t memory_bytes() const {
    const Storage& storage = trainer_->storage();
    return storage.parameter_bytes() + storage.gradient_bytes() + trainer_->executor().schedule().arena_bytes;
  }

  // Whether a step does the same, in the same way.
  bool does_the_same(const TimedTraining& other) const {
    const job::StrategySpec &ours = job_.strategy, &theirs = other.job_.strategy;
    const job::ExecutionStrategySpec &run = ours.execution_strategy,
                                     &run_of_other = theirs.execution_strategy;
    return run.num_threads == run_of_other.num_threads &&
           run.num_iteration_per_drop_scope == run_of_other.num_iteration_per_drop_scope &&
           ours.build_strategy.enable_inplace == theirs.build_strategy.enable_inplace &&
           ours.build_strategy.cache_runtime_context == theirs.build_strategy.cache_runtime_context &&
           ours.sync_nccl_allreduce == theirs.sync_nccl_allreduce &&
           ours.nccl_comm_num == theirs.nccl_comm_num &&
           ours.use_hierarchical_allreduce == theirs.use_hierarchical_allreduce &&
           ours.hierarchical_allreduce_algorithm == theirs.hierarchical_allreduce_algorithm &&
           ours.hierarchical_allreduce_inter_nranks == theirs.hierarchical_allreduce_inter_nranks &&
           trainer_->program_text() == other.trainer_->program_text();
  }

 private:
  static constexpr double kLearningRate = 1e-6;

  const Candidate candidate_;
  const job::JobSpec job_;
  OwnThread thread_;
  std::unique_ptr<TrainingCommunicators> communicators_;
  std::unique_ptr<Trainer> trainer_;
};

namespace {

constexpr int kWarmSteps = 2;           // of each training before its first turn
constexpr int kLookedAtSteps = 9;       // of the default
constexpr double kShortestTurn = 0.03;  // seconds: the clock and the barrier count for nothing then
constexpr int kMostStepsOfATurn = 3000;
constexpr std::size_t kMostBesideBase = 4;  // trainings at a time
constexpr int kRingsOfLoaderTurn = 3;      // times data.prefetch: batches that are ready at once count little
constexpr double kSureOfPrediction = 0.9;  // of the predicted bytes are needed in any case
constexpr double kShareOfFreeMemory = 0.5;  // for them, on all ranks of the host

job::JobSpec without_test_set(job::JobSpec job) {
  job.data.test.reset();
  job.data.split.reset();
  return job;
}

// Settings that these ranks cannot have are not candidates: nothing. Every rank gets the same answer.
std::optional<job::JobSpec> settled_job(const TuningRank& rank, const Candidate& candidate,
                                        const job::StrategySpec* groups) {
  const RankEnv& env = rank.world.env;
  const Environment environment = Environment::of_this_process();
  try {
    job::JobSpec job = without_test_set(rank.job_with(candidate.settings).spec);
    if (groups != nullptr && !job.strategy.use_hierarchical_allreduce) {
      job.strategy.use_hierarchical_allreduce = groups->use_hierarchical_allreduce;
      job.strategy.hierarchical_allreduce_algorithm = groups->hierarchical_allreduce_algorithm;
      job.strategy.hierarchical_allreduce_inter_nranks = groups->hierarchical_allreduce_inter_nranks;
    }
    job.strategy =
        job::settle_strategy(job.strategy, {env.world_size, env.local_size}, [&](const std::string& name) {
          return environment.get(name);
        }).strategy;
    return job;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config || candidate.is_default()) throw;
    return std::nullopt;
  }
}

// Epoch after epoch.
const Batch& next_batch_of(Loader& loader) {
  const Batch* batch = loader.next();
  if (batch != nullptr) return *batch;
  loader.start_epoch(0);
  return *loader.next();
}

std::size_t free_memory() {
  const long pages = ::sysconf(_SC_AVPHYS_PAGES), bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(bytes) : 0;
}

// In each of so many steps the ranks communicate once.
int steps_of_cycle(const job::StrategySpec& strategy) {
  if (strategy.gradient_merge) return strategy.gradient_merge_configs.k_steps;
  if (strategy.localsgd) return strategy.localsgd_configs.k_steps;
  return 1;
}

// Steps that take kShortestTurn, in whole cycles.
int steps_of_turn(double step_seconds, const job::StrategySpec& strategy) {
  const auto steps =
      static_cast<int>(std::clamp(std::ceil(kShortestTurn / step_seconds), 1.0, double{kMostStepsOfATurn}));
  const int cycle = steps_of_cycle(strategy);
  return cycle > kMostStepsOfATurn ? steps : (steps + cycle - 1) / cycle * cycle;
}

double in_seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

}  // namespace

StepTimer::StepTimer(const TuningRank& rank, std::int64_t memory_limit)
    : rank_(rank), memory_limit_(memory_limit) {
  const job::JobSpec job = *settled_job(rank_, {}, nullptr);
  groups_ = choose_groups(job.strategy, rank_.world, rank_.page);
  data_ = std::make_unique<DataSets>(job.data, job.train.seed);
}

StepTimer::~StepTimer() = default;

DefaultFacts StepTimer::look_at_default() {
  rank_.page.phase = Phase::training;
  use_base({});  // the ranks may search for algorithms, which takes time once
  const std::int64_t build_start = monotonic_ns();
  use_base({});
  const double build = in_seconds(largest(monotonic_ns() - build_start));
  counts_.waited_ns = 0;
  std::vector<double> steps;
  steps.reserve(kLookedAtSteps);
  for (int i = 0; i < kLookedAtSteps; ++i) steps.push_back(in_seconds(largest(time_steps(*base_, 1))));
  const double step = median(steps);
  const double wait = in_seconds(largest(counts_.waited_ns)) / kLookedAtSteps;
  const double fetch = seconds_to_fetch();
  pace_.step_seconds = step + wait;
  pace_.steps_of_turn = steps_of_turn(pace_.step_seconds, base_->job().strategy);
  pace_.steps_of_loader_turn = std::max(pace_.steps_of_turn, kRingsOfLoaderTurn * base_->job().data.prefetch);
  return {.step_seconds = step,
          .build_seconds = build,
          .wait_share = wait / pace_.step_seconds,
          .fetch_share = fetch / pace_.step_seconds,
          .gradient_bytes = base_->trainer().storage().gradient_bytes(),
          .memory_bytes = base_->memory_bytes()};
}

double StepTimer::seconds_to_fetch() {
  std::vector<double> times;
  for (int i = 0; i < kLookedAtSteps; ++i) {
    std::int64_t took = 0;
    base_->on_its_thread([&] {
      const std::int64_t start = monotonic_ns();
      base_->fetch();
      took = monotonic_ns() - start;
    });
    times.push_back(in_seconds(largest(took)));
  }
  return median(times);
}

Measured StepTimer::measure(const Candidate& base, const std::vector<Candidate>& candidates, int turns) {
  const std::int64_t start = monotonic_ns();
  Measured found = {.ratios = std::vector<std::vector<double>>(candidates.size())};
  use_base(base);
  const std::size_t at_a_time = most_beside_base();
  for (std::size_t first = 0; first < candidates.size(); first += at_a_time)
    measure_some(candidates, first, std::min(at_a_time, candidates.size() - first), turns, found);
  found.seconds = in_seconds(largest(monotonic_ns() - start));
  return found;
}

Measured StepTimer::measure_loaders(const Candidate& base, const std::vector<int>& threads, int turns) {
  const std::int64_t start = monotonic_ns();
  Measured found = {.ratios = std::vector<std::vector<double>>(threads.size())};
  use_base(base);
  for (int turn = 0; turn < turns; ++turn) {
    const auto of_base = static_cast<double>(largest(time_loaded_steps(base_->job().data.loader_threads)));
    for (std::size_t i = 0; i < threads.size(); ++i)
      found.ratios[i].push_back(static_cast<double>(largest(time_loaded_steps(threads[i]))) / of_base);
  }
  found.seconds = in_seconds(largest(monotonic_ns() - start));
  return found;
}

std::int64_t StepTimer::time_loaded_steps(int loader_threads) {
  job::JobSpec job = base_->job();
  job.data.loader_threads = loader_threads;
  Loader& loader = loader_of(job);
  if (rank_.world.env.world_size > 1) rank_.world.communicator->barrier();
  const std::int64_t start = monotonic_ns();
  base_->on_its_thread([&] {
    loader.start_epoch(0);
    for (int step = 0; step < pace_.steps_of_loader_turn; ++step) {
      base_->step(next_batch_of(loader));
      rank_.page.beat();
    }
  });
  counts_.timed_steps += pace_.steps_of_loader_turn;
  return monotonic_ns() - start;
}

void StepTimer::measure_some(const std::vector<Candidate>& candidates, std::size_t first, std::size_t count,
                             int turns, Measured& found) {
  std::vector<Side> made;
  std::vector<TimedTraining*> sides = {base_.get()};
  std::vector<std::size_t> numbers;
  for (std::size_t i = first; i < first + count; ++i) {
    Side side = make_other(candidates[i]);
    if (!side) continue;
    numbers.push_back(i);
    sides.push_back(side.get());
    made.push_back(std::move(side));
  }
  if (made.empty()) return;
  const auto per_sample = [&](std::int64_t ns, const TimedTraining& side) {
    return static_cast<double>(ns) / static_cast<double>(samples_of_step(side.job()));
  };
  for (int turn = 0; turn < turns; ++turn) {
    const std::vector<std::int64_t> times = time_turn(sides, turn);
    const double of_base = per_sample(times[0], *sides[0]);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      found.ratios[numbers[i]].push_back(per_sample(times[i + 1], *sides[i + 1]) / of_base);
  }
}

// Another one begins in each turn, and every second turn goes backwards, so that nobody always comes after the same.
std::vector<std::int64_t> StepTimer::time_turn(const std::vector<TimedTraining*>& sides, int turn) {
  std::vector<std::int64_t> times(sides.size());
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const std::size_t place = (i + static_cast<std::size_t>(turn / 2)) % sides.size();
    const std::size_t number = turn % 2 == 1 ? sides.size() - 1 - place : place;
    times[number] = time_steps(*sides[number], pace_.steps_of_turn);
  }
  if (rank_.world.env.world_size > 1)
    rank_.world.communicator->all_reduce({times.data(), times.size(), DType::i64}, comm::ReduceOp::max);
  return times;
}

// In a turn of several steps the first one is not timed: it finds the caches as the training before has left them.
std::int64_t StepTimer::time_steps(TimedTraining& side, int steps) {
  Loader& loader = loader_of(side.job());
  std::int64_t spent = 0;
  side.on_its_thread([&] {
    for (int step = steps > 1 ? -1 : 0; step < steps; ++step) {
      const std::int64_t took = time_step(side, loader);
      if (step >= 0) spent += took;
    }
  });
  counts_.timed_steps += steps;
  return spent;
}

std::int64_t StepTimer::time_step(TimedTraining& side, Loader& loader) {
  const std::int64_t asked = monotonic_ns();
  const Batch& batch = next_batch_of(loader);
  counts_.waited_ns += monotonic_ns() - asked;
  if (rank_.world.env.world_size > 1) rank_.world.communicator->barrier();
  const std::int64_t start = monotonic_ns();
  side.step(batch);
  const std::int64_t took = monotonic_ns() - start;
  rank_.page.beat();
  return took;
}

void StepTimer::use_base(const Candidate& base) {
  base_.reset();
  base_ = make_side(base);
  if (!base_)
    throw Error(ErrorKind::internal, fmt::format("the ranks cannot have the settings of {}", base.name));
  time_steps(*base_, kWarmSteps);
}

// Null: the job cannot have these settings.
StepTimer::Side StepTimer::make_side(const Candidate& candidate) {
  const std::optional<job::JobSpec> job = settled_job(rank_, candidate, &groups_);
  if (!job) return nullptr;
  Side side = std::make_unique<TimedTraining>(candidate, *job, resolve_model_facts(job->model, *data_->train),
                                              rank_, fmt::format("tune-{}", counts_.trainings++));
  rank_.page.beat();
  return side;
}

// Before it takes the memory. The same answer on every rank.
bool StepTimer::is_predicted_too_large(const Candidate& candidate) const {
  if (memory_limit_ == 0) return false;
  const std::optional<job::JobSpec> job = settled_job(rank_, candidate, &groups_);
  if (!job) return false;
  const Program program = build_training_program(*job, resolve_model_facts(job->model, *data_->train),
                                                 all_ops(), {.world_size = rank_.world.env.world_size});
  const StepCosts costs = step_costs(program, all_ops());
  return kSureOfPrediction * costs.all_bytes() > static_cast<double>(memory_limit_);
}

// Null also for one that does what the base does, or needs too much memory.
StepTimer::Side StepTimer::make_other(const Candidate& candidate) {
  if (is_predicted_too_large(candidate)) return nullptr;
  Side side = make_side(candidate);
  if (!side) return nullptr;
  const bool too_large =
      memory_limit_ > 0 && largest(static_cast<std::int64_t>(side->memory_bytes())) > memory_limit_;
  const bool same =
      samples_of_step(side->job()) == samples_of_step(base_->job()) && side->does_the_same(*base_);
  if (too_large || largest(same ? 0 : 1) == 0) return nullptr;
  time_steps(*side, kWarmSteps);
  return side;
}

Loader& StepTimer::loader_of(const job::JobSpec& job) {
  std::unique_ptr<Loaders>& loaders = loaders_[{samples_of_step(job), job.data.loader_threads}];
  if (!loaders) {
    loaders = std::make_unique<Loaders>(*data_, job, rank_.world.env, rank_.device, nullptr);
    loaders->train.start_epoch(0);
  }
  return loaders->train;
}

std::int64_t StepTimer::samples_of_step(const job::JobSpec& job) const {
  return job::plan_shares(job, rank_.world.env.world_size).samples;
}

std::size_t StepTimer::most_beside_base() const {
  const auto ranks = static_cast<double>(rank_.world.env.local_size);
  const double each = static_cast<double>(std::max<std::size_t>(1, base_->memory_bytes()));
  const double room = kShareOfFreeMemory * static_cast<double>(free_memory()) / ranks / each;
  const auto fits = static_cast<std::int64_t>(std::clamp(room, 1.0, double{kMostBesideBase}));
  return static_cast<std::size_t>(-largest(-fits));
}

std::int64_t StepTimer::largest(std::int64_t value) const {
  if (rank_.world.env.world_size > 1)
    rank_.world.communicator->all_reduce({&value, 1, DType::i64}, comm::ReduceOp::max);
  return value;
}

}  // namespace fleetrun::runtime
