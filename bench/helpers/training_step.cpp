// bench_training_step STEPS JOB.json [KEY.PATH=VALUE ...]
//
// Trains the job's model on one batch of noise, again and again, and prints as JSON: step_ms, each step's time after a
// warm-up; peak_mib, the most memory that the process held. How convolutions are done goes to standard error.
#include <sys/resource.h>

#include <chrono>
#include <iostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/solo.h"
#include "job/parse_job.h"
#include "job/settle_strategy.h"
#include "noise.h"
#include "runtime/kernels/device.h"
#include "runtime/model_facts.h"
#include "runtime/trainer.h"

namespace {

using namespace fleetrun;
using Clock = std::chrono::steady_clock;

constexpr int kWarmUp = 1;  // makes everything that later steps use
constexpr double kLearningRate = 1e-3;

double peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void measure(int steps, job::JobSpec job) {
  job.strategy = job::settle_strategy(job.strategy, {}).strategy;
  const runtime::ModelFacts facts = runtime::resolve_model_facts(job);
  const auto device = runtime::make_cpu_device();
  const auto solo = comm::make_solo();
  runtime::Trainer trainer(job, facts, *device, *solo, job.train.threads.value_or(1));
  std::cerr << runtime::describe(trainer.algorithm_search()) << '\n';
  const bench::Noise noise(facts, job.data.batch_size);
  std::vector<double> milliseconds;
  for (int step = -kWarmUp; step < steps; ++step) {
    const auto start = Clock::now();
    trainer.step(noise.view(), kLearningRate);
    if (step >= 0)
      milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  fmt::print("{{\"step_ms\": [{:.3f}], \"peak_mib\": {:.0f}}}\n", fmt::join(milliseconds, ", "), peak_mib());
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::cerr << "usage: bench_training_step STEPS JOB.json [KEY.PATH=VALUE ...]\n";
    return 2;
  }
  try {
    measure(std::stoi(arguments[1]),
            job::parse_job_file(arguments[2], {arguments + 3, arguments + count}).spec);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench_training_step: error: " << error.what() << '\n';
    return 1;
  }
}
