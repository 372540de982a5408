// The weights of a model between memory and a safetensors file: parameters, and the states that belong to no
// parameter (running statistics), by PyTorch's names, in plain row-major order. Optimizer state is no weight.
#pragma once
#include <string>
#include <vector>

#include "job/job_spec.h"
#include "runtime/exec/storage.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

std::vector<ValueId> weights_of(const Program& program);

// Throws Error(data) with a line for each tensor that is missing, unexpected, of another shape or no float;
// nothing is stored then. PyTorch's counters `*.num_batches_tracked` are passed over: no model of ours needs
// them. Throws as read_safetensors besides.
void load_weights(const std::string& path, const Program& program, Storage& storage);

// The same from model.pretrained, when the job has one; errors name the key.
void load_pretrained(const job::ModelSpec& model, const Program& program, Storage& storage);

// f32. Throws Error(create|io).
void save_weights(const std::string& path, const Program& program, const Storage& storage);

}  // namespace fleetrun::runtime
