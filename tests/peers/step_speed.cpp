// step_speed JOB.json BATCH STEPS [KEY.PATH=VALUE ...]
//
// With FLEETRUN_STEP_OPS=1 in the environment also how long the ops of each type take by themselves, in all and each.
//
// How long training steps of a job take on the device that FLEETRUN_TEST_DEVICE names (cpu, cuda:0), with a batch of images
// of noise that is there already: no loader, no copy. Warms up with STEPS steps, then prints the images per second of STEPS more.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>

#include <fmt/format.h>

#include "base/error/error.h"
#include "comm/collective/solo.h"
#include "comm/rendezvous/memory_store.h"
#include "job/parse_job.h"
#include "runtime/compile/build_program.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/propagate_layouts.h"
#include "runtime/tensor/philox.h"
#include "support/test_device.h"

namespace fleetrun::runtime::step_speed {
namespace {

int number(const char* text) {
  int value = 0;
  const char* const end = text + std::strlen(text);
  if (std::from_chars(text, end, value).ptr != end || value < 1)
    throw Error(ErrorKind::usage, fmt::format("\"{}\" is not a number above 0", text));
  return value;
}

double seconds_of(Executor& executor, int steps) {
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < steps; ++step) executor.run();
  executor.fetch("loss");  // waits for all of them
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

DType narrow_type(const job::JobSpec& job, const Device& device) {
  const job::AmpType asked = job.strategy.amp_configs.dtype;
  if (asked != job::AmpType::automatic) return asked == job::AmpType::fp16 ? DType::f16 : DType::bf16;
  return device.narrow_types().empty() ? DType::bf16 : device.narrow_types().front();
}

void print_ops(Executor& executor) {
  std::map<std::string, std::vector<OpTime>> by_type;
  for (OpTime& op : executor.time_alone(5)) by_type[op.type].push_back(std::move(op));
  for (auto& [type, ops] : by_type) {
    double all = 0;
    for (const OpTime& op : ops) all += op.seconds;
    fmt::print("{:8.3f} ms {:3} {}:", 1000 * all, ops.size(), type);
    std::sort(ops.begin(), ops.end(),
              [](const OpTime& one, const OpTime& other) { return one.seconds > other.seconds; });
    for (std::size_t i = 0; i < std::min<std::size_t>(ops.size(), 8); ++i)
      fmt::print(" {} {:.3f}", ops[i].name, 1000 * ops[i].seconds);
    fmt::print("\n");
  }
}

void measure(job::JobSpec job, int batch, int steps) {
  job.data.batch_size = batch;
  const ModelFacts facts = {.input_shape = job.data.train.shape, .classes = job.data.train.classes};
  const auto device = test::named_device(job.strategy);
  comm::MemoryStore store;
  const auto of_device = device->make_communicator({store, 0, 1}, 0);
  const auto solo = of_device ? nullptr : comm::make_solo();
  comm::Communicator& communicator = of_device ? *of_device : *solo;
  const ExecutorOptions options = {.team = job.train.threads.value_or(1),
                                   .share_in_place = job.strategy.build_strategy.enable_inplace};
  device->enter_thread(options.team);
  const OpNames device_ops = ops_of(device->kernels());
  Program program = build_training_program(job, facts, all_ops(),
                                           {.device_ops = &device_ops, .narrow = narrow_type(job, *device)});
  propagate_layouts(program, all_ops(), *device, {});
  Storage storage(program, *device, communicator);
  storage.initialise(static_cast<std::uint64_t>(job.train.seed));
  Executor executor(std::move(program), *device, storage, {&communicator}, options);

  std::vector<float> images(
      static_cast<std::size_t>(batch * facts.input_shape[0] * facts.input_shape[1] * facts.input_shape[2]));
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = unit_float(philox(1, 0, i)[0]) - 0.5F;
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(batch), 1);
  const float learning_rate = 0.001F;
  executor.bind("image", images.data());
  executor.bind("label", labels.data());
  executor.bind("learning_rate", &learning_rate);
  seconds_of(executor, steps);
  const double seconds = seconds_of(executor, steps);
  fmt::print("{}{}: batch {}, {} steps: {:.1f} images/s, {:.3f} ms per step\n", device->version(),
             job.strategy.amp ? fmt::format(", amp {}", describe(narrow_type(job, *device))) : "", batch,
             steps, steps * batch / seconds, 1000 * seconds / steps);
  if (Environment::of_this_process().get_or("FLEETRUN_STEP_OPS", "") == "1") print_ops(executor);
}

// As main().
int run_words(int count, char** arguments) {
  if (count < 4) {
    std::cerr << "usage: step_speed JOB.json BATCH STEPS [KEY.PATH=VALUE ...]\n";
    return 2;
  }
  try {
    measure(job::parse_job_file(arguments[1], {arguments + 4, arguments + count}).spec, number(arguments[2]),
            number(arguments[3]));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "step_speed: error: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace
}  // namespace fleetrun::runtime::step_speed

int main(int count, char** arguments) { return fleetrun::runtime::step_speed::run_words(count, arguments); }
