#include "runtime/predict/model_file.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/weight_names.h"
#include "runtime/training/setup/model_facts.h"

namespace fleetrun::runtime {
namespace {

namespace fs = std::filesystem;

std::string file_of(const std::string& name) {
  std::error_code problem;
  if (!fs::is_directory(name, problem)) return name;
  const fs::path file = fs::path(name) / kModelFile;
  if (!fs::exists(file, problem))
    throw Error(ErrorKind::missing, fmt::format("the folder {} has no {}", name, kModelFile),
                "wanted a model file, a checkpoint, or the output.dir of a training that has ended");
  return file.string();
}

bool is_named(const Metadata& metadata) { return metadata.contains("model.name"); }

}  // namespace

ModelFile open_model(const std::string& name, const std::optional<job::JobSpec>& job) {
  const std::string path = file_of(name);
  Safetensors file = read_safetensors(path);
  // Files of ours and of torchvision stay as they are.
  if (names_of(file) != WeightNames::torchvision)
    file = with_names(std::move(file), WeightNames::torchvision);
  const bool has_card = is_named(file.metadata);
  ModelCard card = job && !has_card ? model_card_of(*job) : read_model_card(file.metadata, path);
  const std::string note =
      job && has_card ? fmt::format("--job has no effect: {} says itself which model it holds", path) : "";
  return {.path = path, .card = std::move(card), .weights = std::move(file), .note = note};
}

}  // namespace fleetrun::runtime
