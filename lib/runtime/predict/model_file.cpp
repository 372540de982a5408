#include "runtime/predict/model_file.h"

#include <fmt/format.h>

#include "job/spec/model_path.h"
#include "runtime/checkpoint/weight_names.h"
#include "runtime/training/setup/model_facts.h"

namespace fleetrun::runtime {
namespace {

bool is_named(const Metadata& metadata) { return metadata.contains("model.name"); }

}  // namespace

ModelFile open_model(const std::string& name, const std::optional<job::JobSpec>& job) {
  const std::string path = job::model_path(name);
  Safetensors file = read_safetensors(path);
  // Files of ours and of torchvision stay as they are.
  if (names_of(file) != WeightNames::torchvision)
    file = with_names(std::move(file), WeightNames::torchvision);
  const bool has_card = is_named(file.metadata);
  ModelCard card = job && !has_card ? model_card_of(*job) : read_model_card(file.metadata, path);
  std::vector<std::string> notes;
  if (job && has_card)
    notes.push_back(fmt::format("--job has no effect: {} says itself which model it holds", path));
  if (const std::string averages = warning_about_averages(card, path); !averages.empty())
    notes.push_back(averages);
  return {.path = path, .card = std::move(card), .weights = std::move(file), .notes = std::move(notes)};
}

}  // namespace fleetrun::runtime
