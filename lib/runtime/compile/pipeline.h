// Everything that rewrites a program, in one ordered list, with a check of the program after each entry.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/collective/communicator.h"
#include "job/spec/job_spec.h"
#include "runtime/data/batch_ring.h"
#include "runtime/exec/search_algorithms.h"
#include "runtime/kernels/device.h"
#include "runtime/passes/shared/pass_context.h"

namespace fleetrun::runtime {

// The device that will run the programs, and the ranks that run them together.
struct Target {
  Device& device;
  comm::Communicator& communicator;
  SearchOptions search;
};

// The programs of a job on their way from the model to the device.
struct Compilation {
  const job::JobSpec& job;
  const PassContext& context;
  DType narrow = DType::bf16;            // of strategy.amp
  const Target* target = nullptr;        // null: the programs stay independent of a device
  std::optional<int> rank = {};          // keeps the part of this rank; none: keeps the whole programs
  int micro_batches = 1;                 // of a batch, with strategy.pipeline
  ImageForm feeds = ImageForm::numbers;  // what batches have of their images
  ValueId loss = kNone;                  // to differentiate
  std::vector<ValueId> gradients = {};   // that the optimizer reads
  Program training = {};
  Program smaller = {};  // the training program of ranks with one sample less; without ops: there are none
  bool takes_smaller = false;  // this rank takes `smaller`
  Program evaluation = {};
  Program whole = {};           // the training program with the updates of all ranks
  AlgorithmSearch search = {};  // with a target
};

// Sees the training program as it was built ("built") and after each pass of the strategy that ran, by the pass's name.
using PassWatcher = std::function<void(const std::string& pass, const Program& program)>;

// Whether PassWatcher calls a program so.
bool is_named_by_passes(std::string_view name);

// Takes the forward part of both programs to what a device runs. Throws Error(internal) that names the pass of the strategy
// whose result does not verify, Error(config) for what the job asks of AMP or of the search in vain.
void run_passes(Compilation& compilation, const PassWatcher& watcher = nullptr);

}  // namespace fleetrun::runtime
