// step_probe JOB.json BATCHES.safetensors RESULT.safetensors [KEY.PATH=VALUE ...]
//
// Trains a job's model on batches from a file, in place of its data set, and writes what a job keeps to itself, so that
// another framework's results can be held against it (compare_with_torch.py).
//   in   images f32[S,B,C,H,W], labels i32[S,B]: S steps, each with the learning rate of the job's schedule
// On the device that FLEETRUN_TEST_DEVICE names: cpu, cuda:0.
//   out  evaluation.logits f32[B,K]: of the first batch, before training, by the evaluation program
//        logits f32[B,K], losses f32[B], gradient.NAME: of the first step
//        loss f32[S]; weight.NAME after all steps
#include <cstring>
#include <iostream>

#include <fmt/format.h>

#include "base/error/error.h"
#include "comm/collective/solo.h"
#include "comm/rendezvous/memory_store.h"
#include "job/parse_job.h"
#include "job/spec/schedule.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/compile/build_program.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/propagate_layouts.h"
#include "support/test_device.h"

namespace fleetrun::runtime::step_probe {
namespace {

const StoredTensor& tensor_of(const Safetensors& file, const std::string& name, DType dtype,
                              std::size_t dims) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end() || found->second.dtype != dtype || found->second.shape.size() != dims)
    throw Error(ErrorKind::data, fmt::format("wanted {} as {} with {} sizes", name, describe(dtype), dims));
  return found->second;
}

struct Batches {
  Shape shape;  // [S,B,C,H,W]
  std::vector<float> images;
  std::vector<std::int32_t> labels;

  explicit Batches(const Safetensors& file) {
    const StoredTensor& stored = tensor_of(file, "images", DType::f32, 5);
    shape = stored.shape;
    images = stored.as<float>();
    const StoredTensor& classes = tensor_of(file, "labels", DType::i32, 2);
    if (classes.shape != Shape{shape[0], shape[1]})
      throw Error(ErrorKind::data,
                  fmt::format("labels are {}, images {}", describe(classes.shape), describe(shape)));
    labels = classes.as<std::int32_t>();
  }

  std::int64_t steps() const { return shape[0]; }
  const float* images_of(std::int64_t step) const {
    return images.data() + static_cast<std::size_t>(step * shape[1] * shape[2] * shape[3] * shape[4]);
  }
  const std::int32_t* labels_of(std::int64_t step) const { return labels.data() + step * shape[1]; }
};

// Tensors to be written, with the memory that they point into.
class Result {
 public:
  void add(const std::string& name, const Shape& shape, std::vector<float> values) {
    const std::vector<float>& kept = values_[name] = std::move(values);
    file_.tensors[name] = {
        DType::f32, shape, {reinterpret_cast<const char*>(kept.data()), kept.size() * sizeof(float)}};
  }
  void write(const std::string& path) const { write_safetensors(path, file_); }

 private:
  Safetensors file_;
  std::map<std::string, std::vector<float>> values_;
};

// Makes logits and losses results of the program, and gives the name of the logits.
std::string fetch_logits(Program& program) {
  for (const Op& op : program.ops) {
    if (op.type != "softmax_with_cross_entropy") continue;
    const ValueId logits = op.inputs.at(0), losses = program.find("losses");
    program.fetches.insert(program.fetches.end(), {logits, losses});
    return program.value(logits).name;
  }
  throw Error(ErrorKind::internal, "the program has no softmax_with_cross_entropy");
}

// A program with its logits among the results, ready to run.
struct Model {
  Program program;
  std::string logits;
  std::unique_ptr<Executor> executor;

  Model(Program built, Device& device, const ParameterLayouts& given) : program(std::move(built)) {
    logits = fetch_logits(program);
    propagate_layouts(program, all_ops(), device, given);
  }

  void prepare(Device& device, Storage& storage, comm::Communicator& communicator,
               const ExecutorOptions& options) {
    executor = std::make_unique<Executor>(program, device, storage,
                                          std::vector<comm::Communicator*>{&communicator}, options);
  }

  void run(const Batches& batches, std::int64_t step) {
    executor->bind("image", batches.images_of(step));
    executor->bind("label", batches.labels_of(step));
    executor->run();
  }

  void keep_fetch(const std::string& fetch, const std::string& name, Result& result) const {
    const Shape& shape = program.value(program.find(fetch)).shape;
    const auto* values = static_cast<const float*>(executor->fetch(fetch));
    result.add(name, shape, {values, values + count_of(shape)});
  }
};

void keep(const Program& program, ValueKind kind, const std::string& prefix, const Storage& storage,
          Result& result) {
  for (const ValueId id : program.of_kind(kind)) {
    const Value& value = program.value(id);
    const std::string& name = kind == ValueKind::gradient ? program.value(value.of).name : value.name;
    result.add(prefix + name, value.shape, storage.read(value.name));
  }
}

void probe(const job::JobSpec& parsed, const std::string& batches_path, const std::string& result_path) {
  const Batches batches(read_safetensors(batches_path));
  job::JobSpec job = parsed;
  job.data.batch_size = static_cast<int>(batches.shape[1]);
  const ModelFacts facts = {
      .input_shape = {static_cast<int>(batches.shape[2]), static_cast<int>(batches.shape[3]),
                      static_cast<int>(batches.shape[4])},
      .classes = job.model.class_dim.value()};
  const ExecutorOptions options = {.team = job.train.threads.value_or(1),
                                   .share_in_place = job.strategy.build_strategy.enable_inplace};
  const auto device = test::named_device(job.strategy);
  comm::MemoryStore store;
  const auto of_device = device->make_communicator({store, 0, 1}, 0);
  const auto solo = of_device ? nullptr : comm::make_solo();
  comm::Communicator& communicator = of_device ? *of_device : *solo;
  device->enter_thread(options.team);

  const OpNames device_ops = ops_of(device->kernels());
  Model training(build_training_program(job, facts, all_ops(), {.device_ops = &device_ops}), *device, {});
  Model evaluation(build_evaluation_program(job, facts, all_ops()), *device,
                   parameter_layouts(training.program));
  Storage storage(training.program, *device, communicator);
  storage.initialise(static_cast<std::uint64_t>(job.train.seed));
  load_pretrained(job.model, training.program, storage);
  training.prepare(*device, storage, communicator, options);
  evaluation.prepare(*device, storage, communicator, options);

  Result result;
  evaluation.run(batches, 0);
  evaluation.keep_fetch(evaluation.logits, "evaluation.logits", result);
  std::vector<float> losses;
  for (std::int64_t step = 0; step < batches.steps(); ++step) {
    const auto rate = static_cast<float>(
        job::learning_rate_at(job.optimizer.learning_rate, {step, step}, batches.steps(), batches.steps()));
    training.executor->bind("learning_rate", &rate);
    training.run(batches, step);
    losses.push_back(*static_cast<const float*>(training.executor->fetch("loss")));
    if (step > 0) continue;
    training.keep_fetch(training.logits, "logits", result);
    training.keep_fetch("losses", "losses", result);
    keep(training.program, ValueKind::gradient, "gradient.", storage, result);
  }
  result.add("loss", {batches.steps()}, losses);
  keep(training.program, ValueKind::parameter, "weight.", storage, result);
  result.write(result_path);
}

// As main().
int run_words(int count, char** arguments) {
  if (count < 4) {
    std::cerr << "usage: step_probe JOB.json BATCHES.safetensors RESULT.safetensors [KEY.PATH=VALUE ...]\n";
    return 2;
  }
  try {
    probe(job::parse_job_file(arguments[1], {arguments + 4, arguments + count}).spec, arguments[2],
          arguments[3]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "step_probe: error: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace
}  // namespace fleetrun::runtime::step_probe

int main(int count, char** arguments) { return fleetrun::runtime::step_probe::run_words(count, arguments); }
