#include "runtime/training/export_weights.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "comm/collective/solo.h"
#include "runtime/checkpoint/model_card.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/compile/build_program.h"
#include "runtime/exec/storage.h"
#include "runtime/kernels/device.h"
#include "runtime/training/model_facts.h"

namespace fleetrun::runtime {
namespace {

constexpr const char* kAnotherFile = "name another file, or move this one away";

// A job that says what its data are like can be exported without them; then nobody knows the names of the classes.
std::unique_ptr<DataSet> open_if_there(const job::JobSpec& job) {
  try {
    return open_data_set(job.data.train);
  } catch (const Error&) {
    if (!job.model.input_shape || !job.model.class_dim) throw;
    return nullptr;
  }
}

}  // namespace

// Nothing is run: the evaluation program has all weights and no optimizer state, its layouts stay plain.
std::vector<std::string> export_weights(const job::JobSpec& job, WeightNames names, const std::string& path) {
  require_own_weights(path, kAnotherFile);
  const auto train = open_if_there(job);
  const ModelFacts facts = train ? resolve_model_facts(job.model, *train) : resolve_model_facts(job);
  const ModelCard card =
      make_model_card(job, facts, train ? train->class_names() : std::vector<std::string>());
  const Program program = build_evaluation_program(job, facts, all_ops());
  const auto device = make_cpu_device();
  const auto solo = comm::make_solo();
  Storage storage(program, *device, *solo);
  storage.initialise(static_cast<std::uint64_t>(job.train.seed));
  const std::optional<Pretrained> loaded = load_pretrained(job.model, program, storage);
  save_weights(path, read_tensors(weights_of(program), program, storage), to_metadata(card), names);
  return loaded ? loaded->lines : std::vector<std::string>();
}

void convert_weights(const std::string& from, WeightNames names, const std::string& to) {
  std::error_code none_there;
  if (std::filesystem::equivalent(from, to, none_there))
    throw Error(ErrorKind::usage, fmt::format("{} is both the file to read and the file to write", from),
                "name another file to write");
  require_own_weights(to, kAnotherFile);
  Safetensors file = with_context(fmt::format("reading {}", from),
                                  [&] { return with_names(read_safetensors(from), names); });
  mark_as_ours(file);
  write_safetensors(to, file);
}

}  // namespace fleetrun::runtime
