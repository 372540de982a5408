// The weights that a job would start training with, without training.
#pragma once
#include <string>

#include "job/job_spec.h"

namespace fleetrun::runtime {

// Writes the job's initial weights, from train.seed or model.pretrained, as safetensors to `path`.
// Throws Error: config, data, missing, permission, create, io.
void export_weights(const job::JobSpec& job, const std::string& path);

}  // namespace fleetrun::runtime
