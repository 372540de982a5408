// A model file by the words of a command line.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "job/spec/job_spec.h"
#include "runtime/checkpoint/model_card.h"
#include "runtime/checkpoint/safetensors.h"

namespace fleetrun::runtime {

struct ModelFile {
  std::string path;
  ModelCard card;
  Safetensors weights;
  std::vector<std::string> notes;  // for the user
};

// `name`: a safetensors file, or a folder with a model.safetensors, as a checkpoint and output.dir are. The card is that of the file or,
// for a file without one, that of `job`. Throws Error(missing|permission|io|data), and for a file without a card the error of read_model_card().
// The tensors get torchvision's names, whatever names the file has.
ModelFile open_model(const std::string& name, const std::optional<job::JobSpec>& job);

}  // namespace fleetrun::runtime
