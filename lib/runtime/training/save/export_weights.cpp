#include "runtime/training/save/export_weights.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "comm/collective/solo.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/compile/build_program.h"
#include "runtime/exec/storage.h"
#include "runtime/kernels/device.h"
#include "runtime/training/setup/model_facts.h"

namespace fleetrun::runtime {
namespace {

constexpr const char* kAnotherFile = "name another file, or move this one away";

}  // namespace

// Nothing is run: the evaluation program has all weights and no optimizer state, its layouts stay plain.
std::vector<std::string> export_weights(const job::JobSpec& job, WeightNames names, const std::string& path) {
  require_own_weights(path, kAnotherFile);
  const ModelCard card = model_card_of(job);
  const Program program = build_evaluation_program(job, card.facts(), all_ops());
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
