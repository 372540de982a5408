// bench_strategy_pair RANKS STEPS JOB.json PLAIN... -- SWITCHED...
//
// Trains one model twice in one process, step by step in turn: as the job says with the settings PLAIN, and with
// SWITCHED (KEY.PATH=VALUE each). Ranks are threads that share memory as processes of one host would. Both warm up until
// steps take the same time (steady.h). Prints as JSON the times of rank 0's steps after that: plain_ms and switched_ms,
// number i of both measured one right after the other.
#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <iostream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "host_ranks.h"
#include "job/parse_job.h"
#include "job/spec/settle_strategy.h"
#include "noise.h"
#include "runtime/kernels/device.h"
#include "runtime/training/setup/model_facts.h"
#include "runtime/training/trainer/trainer.h"
#include "runtime/training/trainer/training_communicators.h"
#include "steady.h"

namespace {

using namespace fleetrun;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

constexpr double kLearningRate = 1e-3;

struct Setting {
  job::JobSpec job;
  bench::TemporaryFolder folder;  // where the ranks find each other

  Setting(const std::string& file, const Words& words, int ranks)
      : job(job::parse_job_file(file, words).spec) {
    job.strategy = job::settle_strategy(job.strategy, {.all = ranks, .of_node = ranks}).strategy;
  }
};

// One rank of one of the two trainings.
class Side {
 public:
  Side(int rank, int ranks, const Setting& setting)
      : world_(bench::join_host(setting.folder.path(), rank, ranks)),
        device_(runtime::make_cpu_device()),
        communicators_(setting.job.strategy, world_, *device_),
        trainer_(setting.job, runtime::resolve_model_facts(setting.job), *device_, communicators_.all(),
                 {.threads = setting.job.train.threads.value_or(1)}) {
    trainer_.share_parameters();
  }

  void step(const bench::Noise& noise) {
    const auto start = Clock::now();
    trainer_.step(noise.view(), kLearningRate);
    milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }

  std::vector<double> milliseconds;

 private:
  comm::World world_;
  std::unique_ptr<runtime::Device> device_;
  runtime::TrainingCommunicators communicators_;
  runtime::Trainer trainer_;
};

void measure(int ranks, int steps, const Setting& plain, const Setting& switched) {
  std::barrier together(ranks);
  bool warm = false;  // rank 0 decides; the others read it after the next barrier
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Side first(rank, ranks, plain), second(rank, ranks, switched);
      const bench::Noise noise(runtime::resolve_model_facts(plain.job), plain.job.data.batch_size);
      const auto pair = [&](int number) {
        for (Side* side : number % 2 == 0 ? std::array{&first, &second} : std::array{&second, &first}) {
          together.arrive_and_wait();
          side->step(noise);
        }
      };
      for (int number = 0; !warm; ++number) {
        pair(number);
        together.arrive_and_wait();
        if (rank == 0) warm = bench::warmed_up(first.milliseconds) && bench::warmed_up(second.milliseconds);
        together.arrive_and_wait();
      }
      first.milliseconds.clear(), second.milliseconds.clear();
      for (int number = 0; number < steps; ++number) pair(number);
      if (rank == 0)
        fmt::print("{{\"plain_ms\": [{:.3f}], \"switched_ms\": [{:.3f}]}}\n",
                   fmt::join(first.milliseconds, ", "), fmt::join(second.milliseconds, ", "));
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int count, char** arguments) {
  const Words words(arguments + 1, arguments + count);
  const auto middle = std::find(words.begin(), words.end(), "--");
  if (words.size() < 4 || middle == words.end()) {
    std::cerr << "usage: bench_strategy_pair RANKS STEPS JOB.json PLAIN... -- SWITCHED...\n";
    return 2;
  }
  try {
    const int ranks = std::stoi(words[0]);
    const Setting plain(words[2], {words.begin() + 3, middle}, ranks);
    const Setting switched(words[2], {middle + 1, words.end()}, ranks);
    measure(ranks, std::stoi(words[1]), plain, switched);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench_strategy_pair: error: " << error.what() << '\n';
    return 1;
  }
}
