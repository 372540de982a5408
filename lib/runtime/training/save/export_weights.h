// Weights in a file of their own, without training.
#pragma once
#include <string>
#include <vector>

#include "job/spec/job_spec.h"
#include "runtime/checkpoint/weight_names.h"

namespace fleetrun::runtime {

// Both functions first rename trained weights that have the name of the new file (keep_earlier_weights() in output_folder.h), and return
// lines for the user about that and about model.pretrained.

// Writes the job's initial weights, from train.seed or model.pretrained, as safetensors to `path`. Throws Error: config, data, missing, permission, create, io.
std::vector<std::string> export_weights(const job::JobSpec& job, WeightNames names, const std::string& path);

// Writes the weights of the safetensors file `from` to `to`, under these names. The numbers and the rest of the metadata stay as they are.
// Throws Error: usage for the same file, data, also for a file without weights, missing, permission, create, io.
std::vector<std::string> convert_weights(const std::string& from, WeightNames names, const std::string& to);

}  // namespace fleetrun::runtime
