// deliberate_race none|field|copied
//
// Two ranks train on threads of their own, and their first steps fill oneDNN's cache of primitives at the same time. With `field`
// both count their steps in one unguarded number; with `copied` both copy into one unguarded buffer. The thread sanitizer has to
// report these two and nothing else.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "comm/collective/solo.h"
#include "runtime/kernels/device.h"
#include "runtime/training/trainer/trainer.h"

namespace {

using namespace fleetrun;
using namespace fleetrun::runtime;

constexpr int kBatch = 4, kSteps = 3;
constexpr ModelFacts kFacts = {.input_shape = {1, 28, 28}, .classes = 10};

struct Shared {
  int steps = 0;
  std::array<char, 4096> losses{};
};

[[gnu::noinline]] void count_step(Shared& shared) { ++shared.steps; }

[[gnu::noinline]] void copy_losses(Shared& shared, const std::vector<char>& losses) {
  std::memcpy(shared.losses.data(), losses.data(), losses.size());
}

void train(const std::string& race, Shared& shared) {
  job::JobSpec job;
  job.model.name = job::ModelName::lenet;
  job.data.batch_size = kBatch;
  const std::vector<float> images(std::size_t{kBatch} * 28 * 28, 0.5F);
  const std::vector<std::int32_t> labels(kBatch, 1);
  const std::vector<char> losses(shared.losses.size(), 'x');
  const auto device = make_cpu_device();
  const auto solo = comm::make_solo();
  Trainer trainer(job, kFacts, *device, *solo);
  for (int step = 0; step < kSteps; ++step) {
    if (race == "field") count_step(shared);
    trainer.step({images.data(), labels.data()}, 0.01);
    if (race == "copied") copy_losses(shared, losses);
  }
}

}  // namespace

int main(int count, char** words) {
  const std::string race = count == 2 ? words[1] : "";
  if (race != "none" && race != "field" && race != "copied") {
    std::fprintf(stderr, "usage: deliberate_race none|field|copied\n");
    return 2;
  }
  Shared shared;
  std::thread one([&] { train(race, shared); }), other([&] { train(race, shared); });
  one.join();
  other.join();
  return 0;
}
