#include "runtime/training/export_weights.h"

#include "comm/collective/solo.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/compile/build_program.h"
#include "runtime/exec/storage.h"
#include "runtime/kernels/device.h"
#include "runtime/training/model_facts.h"

namespace fleetrun::runtime {

// Nothing is run: the evaluation program has all weights and no optimizer state, its layouts stay plain.
void export_weights(const job::JobSpec& job, const std::string& path) {
  require_own_weights(path, "name another file, or move this one away");
  const Program program = build_evaluation_program(job, resolve_model_facts(job), all_ops());
  const auto device = make_cpu_device();
  const auto solo = comm::make_solo();
  Storage storage(program, *device, *solo);
  storage.initialise(static_cast<std::uint64_t>(job.train.seed));
  load_pretrained(job.model, program, storage);
  save_weights(path, program, storage);
}

}  // namespace fleetrun::runtime
