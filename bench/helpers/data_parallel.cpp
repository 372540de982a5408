// bench_data_parallel RANKS PAIRS STEPS JOB.json [KEY.PATH=VALUE ...]
//
// Trains the job's model on forked ranks, each on one batch of noise: STEPS steps together, STEPS steps each rank for itself
// at the same time, and STEPS steps each for itself that wait for the other ranks' at a bare barrier, in turn, PAIRS times.
// Each way first warms up until its turns take the same time (steady.h). Prints as JSON the milliseconds of a step in each
// turn, together_ms, alone_ms and barrier_ms, by the ranks' summed speed. Number i of each was measured right after number i
// of the others.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/run/timeline.h"
#include "host_ranks.h"
#include "job/parse_job.h"
#include "job/spec/settle_strategy.h"
#include "noise.h"
#include "runtime/kernels/device.h"
#include "runtime/training/setup/model_facts.h"
#include "runtime/training/trainer/trainer.h"
#include "runtime/training/trainer/training_communicators.h"
#include "steady.h"

namespace fleetrun::bench {
namespace {

constexpr double kLearningRate = 1e-3;

struct Arguments {
  int ranks = 2;
  int pairs = 0;
  int steps = 0;  // of a turn
  job::JobSpec job;
};

// How many steps were done by the time `until`, which lies in the last of the steps that ended at `ends` or before.
double steps_until(std::int64_t until, std::int64_t start, const std::vector<std::int64_t>& ends) {
  const auto next = std::lower_bound(ends.begin(), ends.end(), until);
  const std::int64_t before = next == ends.begin() ? start : *(next - 1);
  return static_cast<double>(next - ends.begin()) +
         static_cast<double>(until - before) / static_cast<double>(*next - before);
}

// Milliseconds of a step, by the ranks' summed speed until the first of them has done its steps: what the others do after it
// that, they do with the machine for themselves.
template <class Step>
double milliseconds_of_turn(int steps, comm::Communicator& all, const Step& make_step) {
  std::vector<std::int64_t> ends;
  all.barrier();
  const std::int64_t start = monotonic_ns();
  for (int step = 0; step < steps; ++step) {
    make_step();
    ends.push_back(monotonic_ns());
  }
  std::int64_t first_end = ends.back();
  all.all_reduce({&first_end, 1, DType::i64}, comm::ReduceOp::min);
  auto speed =
      static_cast<float>(steps_until(first_end, start, ends) * 1e6 / static_cast<double>(first_end - start));
  all.all_reduce({&speed, 1, DType::f32}, comm::ReduceOp::sum);
  return all.size() / speed;
}

void train(const Arguments& arguments, comm::World world) {
  const job::JobSpec& job = arguments.job;
  const runtime::ModelFacts facts = runtime::resolve_model_facts(job);
  const auto device = runtime::make_cpu_device();
  comm::Communicator& all = *world.communicator;
  const auto solo = comm::make_solo();
  const runtime::TrainingCommunicators communicators(job.strategy, world, *device);
  const int threads = job.train.threads.value_or(1);
  runtime::Trainer together(job, facts, *device, communicators.all(), {.threads = threads});
  runtime::Trainer alone(job, facts, *device, *solo, {.threads = threads});
  together.share_parameters();
  const Noise noise(facts, job.data.batch_size);

  constexpr std::size_t kWays = 3;
  const std::array<const char*, kWays> names = {"together_ms", "alone_ms", "barrier_ms"};
  const std::array<std::function<void()>, kWays> steps = {[&] { together.step(noise.view(), kLearningRate); },
                                                          [&] { alone.step(noise.view(), kLearningRate); },
                                                          [&] {
                                                            alone.step(noise.view(), kLearningRate);
                                                            all.barrier();
                                                          }};
  std::array<std::vector<double>, kWays> milliseconds;
  for (const auto& step : steps)
    // All ranks see the same times.
    for (std::vector<double> warm_up; !warmed_up(warm_up);)
      warm_up.push_back(milliseconds_of_turn(arguments.steps, all, step));
  for (int pair = 0; pair < arguments.pairs; ++pair)
    for (std::size_t i = 0; i < kWays; ++i) {
      const std::size_t way = (static_cast<std::size_t>(pair) + i) % kWays;
      milliseconds[way].push_back(milliseconds_of_turn(arguments.steps, all, steps[way]));
    }
  if (all.rank() != 0) return;
  std::vector<std::string> parts;
  for (std::size_t way = 0; way < kWays; ++way)
    parts.push_back(fmt::format("\"{}\": [{:.4f}]", names[way], fmt::join(milliseconds[way], ", ")));
  fmt::print("{{{}}}\n", fmt::join(parts, ", "));
}

int run(Arguments arguments) {
  job::StrategySpec& strategy = arguments.job.strategy;
  strategy = job::settle_strategy(strategy, {.all = arguments.ranks, .of_node = arguments.ranks}).strategy;
  const TemporaryFolder folder;
  return fork_ranks(arguments.ranks,
                    [&](int rank) { train(arguments, join_host(folder.path(), rank, arguments.ranks)); });
}

}  // namespace
}  // namespace fleetrun::bench

int main(int count, char** arguments) {
  using namespace fleetrun;
  if (count < 5) {
    std::cerr << "usage: bench_data_parallel RANKS PAIRS STEPS JOB.json [KEY.PATH=VALUE ...]\n";
    return 2;
  }
  try {
    return bench::run({.ranks = std::stoi(arguments[1]),
                       .pairs = std::stoi(arguments[2]),
                       .steps = std::stoi(arguments[3]),
                       .job = job::parse_job_file(arguments[4], {arguments + 5, arguments + count}).spec});
  } catch (const std::exception& error) {
    std::cerr << "bench_data_parallel: error: " << error.what() << '\n';
    return 1;
  }
}
