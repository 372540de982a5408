// bench_data_parallel together|independent RANKS STEPS JOB.json [KEY.PATH=VALUE ...]
//
// Trains the job's model on forked ranks, each on one batch of noise, again and again: together, or each rank for itself at
// the same time. Prints as JSON: step_ms, each step's time on rank 0 after a warm-up; seconds, of all steps.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/shared_memory.h"
#include "comm/solo.h"
#include "folder_store.h"
#include "job/parse_job.h"
#include "job/settle_strategy.h"
#include "noise.h"
#include "runtime/kernels/device.h"
#include "runtime/model_facts.h"
#include "runtime/trainer.h"
#include "runtime/training_communicators.h"

namespace fleetrun::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUp = 20;
constexpr double kLearningRate = 1e-3;

struct Arguments {
  bool together = true;
  int ranks = 2;
  int steps = 0;
  job::JobSpec job;
};

comm::World join(const std::string& folder, int rank, int ranks) {
  auto store = std::make_unique<FolderStore>(folder);
  comm::SharedMemoryJoin join = comm::join_shared_memory({.party = {*store, rank, ranks}});
  if (!join.communicator) throw std::runtime_error(join.problem);
  const auto more = [segments = join.segments](const comm::Party& party, const std::string& name) {
    return comm::make_shared_memory({.party = party, .name = name}, segments);
  };
  return {{.rank = rank, .world_size = ranks, .local_size = ranks},
          std::move(store),
          std::move(join.communicator),
          more};
}

void train(const Arguments& arguments, comm::World world) {
  job::JobSpec job = arguments.job;
  job.strategy = job::settle_strategy(job.strategy, {arguments.ranks, arguments.ranks}).strategy;
  const runtime::ModelFacts facts = runtime::resolve_model_facts(job);
  const auto device = runtime::make_cpu_device();
  comm::Communicator& all = *world.communicator;
  const auto solo = comm::make_solo();
  const runtime::TrainingCommunicators communicators(job.strategy, world, *device);
  runtime::Trainer trainer(job, facts, *device,
                           arguments.together ? communicators.all() : runtime::Communicators(*solo),
                           job.train.threads.value_or(1));
  trainer.share_parameters();
  const Noise noise(facts, job.data.batch_size);
  for (int step = 0; step < kWarmUp; ++step) trainer.step(noise.view(), kLearningRate);
  all.barrier();
  std::vector<double> milliseconds;
  const auto start = Clock::now();
  for (int step = 0; step < arguments.steps; ++step) {
    const auto before = Clock::now();
    trainer.step(noise.view(), kLearningRate);
    milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - before).count());
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  all.barrier();  // the cores are busy until the slowest is done
  if (all.rank() == 0)
    fmt::print("{{\"step_ms\": [{:.4f}], \"seconds\": {:.4f}}}\n", fmt::join(milliseconds, ", "), seconds);
}

int run(const Arguments& arguments) {
  std::string folder = (std::filesystem::temp_directory_path() / "fleetrun-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  for (int rank = 0; rank < arguments.ranks; ++rank) {
    if (::fork() != 0) continue;
    try {
      train(arguments, join(folder, rank, arguments.ranks));
      std::fflush(stdout);
      ::_exit(0);
    } catch (const std::exception& error) {
      fmt::print(stderr, "rank {}: {}\n", rank, error.what());
      ::_exit(1);
    }
  }
  int failed = 0;
  for (int status = 0; ::wait(&status) > 0;) failed += status != 0;
  std::filesystem::remove_all(folder);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fleetrun::bench

int main(int count, char** arguments) {
  using namespace fleetrun;
  if (count < 5) {
    std::cerr
        << "usage: bench_data_parallel together|independent RANKS STEPS JOB.json [KEY.PATH=VALUE ...]\n";
    return 2;
  }
  try {
    return bench::run({.together = std::string(arguments[1]) == "together",
                       .ranks = std::stoi(arguments[2]),
                       .steps = std::stoi(arguments[3]),
                       .job = job::parse_job_file(arguments[4], {arguments + 5, arguments + count}).spec});
  } catch (const std::exception& error) {
    std::cerr << "bench_data_parallel: error: " << error.what() << '\n';
    return 1;
  }
}
