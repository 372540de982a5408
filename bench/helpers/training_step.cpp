// bench_training_step JOB.json [KEY.PATH=VALUE ...]
//
// Trains the job's model on one batch of noise, as many steps as each line of standard input says, so that programs can take
// turns without losing what they warmed up. Answers each line with JSON: step_ms, the mean time of a step; peak_mib, the most
// memory that the process held since the last answer. The first line, {"notes": []}, says that it is ready.
#include <chrono>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "comm/collective/solo.h"
#include "job/parse_job.h"
#include "job/spec/settle_strategy.h"
#include "noise.h"
#include "runtime/kernels/device.h"
#include "runtime/training/setup/model_facts.h"
#include "runtime/training/trainer/trainer.h"

namespace {

using namespace fleetrun;
using Clock = std::chrono::steady_clock;

constexpr double kLearningRate = 1e-3;

// The most memory that this process held since the last call.
double take_peak_mib() {
  std::ifstream status("/proc/self/status");
  double kib = -1;
  for (std::string word; kib < 0 && status >> word;)
    if (word == "VmHWM:") status >> kib;
  // proc(5): sets the high-water mark to what is held now
  if (!(std::ofstream("/proc/self/clear_refs") << 5 << std::flush) || kib < 0)
    throw std::runtime_error("the kernel does not say how much memory this process held");
  return kib / 1024;
}

void answer(job::JobSpec job) {
  job.strategy = job::settle_strategy(job.strategy, {}).strategy;
  const runtime::ModelFacts facts = runtime::resolve_model_facts(job);
  const auto device = runtime::make_cpu_device();
  const auto solo = comm::make_solo();
  runtime::Trainer trainer(job, facts, *device, *solo, {.threads = job.train.threads.value_or(1)});
  std::cerr << runtime::describe(trainer.algorithm_search()) << '\n';
  const bench::Noise noise(facts, job.data.batch_size);
  std::cout << "{\"notes\": []}" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const int steps = std::stoi(line);
    const auto start = Clock::now();
    for (int step = 0; step < steps; ++step) trainer.step(noise.view(), kLearningRate);
    const std::chrono::duration<double, std::milli> took = Clock::now() - start;
    std::cout << fmt::format(R"({{"step_ms": {:.4f}, "peak_mib": {:.1f}}})", took.count() / steps,
                             take_peak_mib())
              << std::endl;
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: bench_training_step JOB.json [KEY.PATH=VALUE ...]\n";
    return 2;
  }
  try {
    answer(job::parse_job_file(arguments[1], {arguments + 2, arguments + count}).spec);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench_training_step: error: " << error.what() << '\n';
    return 1;
  }
}
