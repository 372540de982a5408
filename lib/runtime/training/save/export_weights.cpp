#include "runtime/training/save/export_weights.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/unique_fd.h"
#include "comm/collective/solo.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/compile/build_program.h"
#include "runtime/exec/storage.h"
#include "runtime/kernels/device.h"
#include "runtime/training/save/output_folder.h"
#include "runtime/training/setup/model_facts.h"

namespace fleetrun::runtime {
namespace {

constexpr const char* kAnotherFile = "name another file, or move this one away";
constexpr const char *kOrigin = "fleetrun.weights", *kExported = "exported";  // in the metadata
constexpr std::string_view kWeight = ".weight";  // the end of a name that every network has

// Weights that a job starts with can be exported again; weights that a training has made cannot.
bool are_exported(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  const Metadata metadata = read_metadata(fd.get());
  const auto origin = metadata.find(kOrigin);
  return origin != metadata.end() && origin->second == kExported;
}

// Before other weights replace those at `path`. Returns the line for the user, if there is one.
std::vector<std::string> keep_trained_weights(const std::string& path) {
  if (are_exported(path)) return {};
  const std::string kept = keep_earlier_weights(path);
  if (kept.empty()) return {};
  return {"weights of an earlier run: " + kept};
}

// Other files of a checkpoint hold states under names of their own.
void require_weights(const Safetensors& file, const std::string& path) {
  const bool has_some =
      std::ranges::any_of(file.tensors, [](const auto& tensor) { return tensor.first.ends_with(kWeight); });
  if (!has_some)
    throw Error(ErrorKind::data,
                fmt::format("{} holds no model: found no tensor whose name ends in {}", path, kWeight));
}

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
  std::vector<std::string> lines = loaded ? loaded->lines : std::vector<std::string>();
  for (std::string& line : keep_trained_weights(path)) lines.push_back(std::move(line));
  Metadata about = to_metadata(card);
  about[kOrigin] = kExported;
  save_weights(path, read_tensors(weights_of(program), program, storage), about, names);
  return lines;
}

std::vector<std::string> convert_weights(const std::string& from, WeightNames names, const std::string& to) {
  std::error_code none_there;
  if (std::filesystem::equivalent(from, to, none_there))
    throw Error(ErrorKind::usage, fmt::format("{} is both the file to read and the file to write", from),
                "name another file to write");
  require_own_weights(to, kAnotherFile);
  Safetensors file = with_context(fmt::format("reading {}", from),
                                  [&] { return with_names(read_safetensors(from), names); });
  require_weights(file, from);
  mark_as_ours(file);
  std::vector<std::string> lines = keep_trained_weights(to);
  write_safetensors(to, file);
  return lines;
}

}  // namespace fleetrun::runtime
