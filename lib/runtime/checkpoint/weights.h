// The weights of a model between memory and a safetensors file: parameters, and the states that belong to no
// parameter (running statistics), by PyTorch's names, in plain row-major order. Optimizer state is not a weight, but is
// kept in the same way.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/spec/job_spec.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/weight_names.h"
#include "runtime/exec/storage.h"
#include "runtime/graph/program.h"

namespace fleetrun::runtime {

std::vector<ValueId> weights_of(const Program& program);
std::vector<ValueId> running_statistics_of(const Program& program);  // those of the weights that are states
// Without merged gradients, which are different on each rank (merge_gradients.h), and without the states that only strategies
// of local training and of sparse gradients have (local_training.h, sparse_states.h).
std::vector<ValueId> optimizer_states_of(const Program& program);

// A tensor by itself: f32, row-major.
struct PlainTensor {
  Shape shape;
  std::vector<float> values;
};
using PlainTensors = std::map<std::string, PlainTensor>;  // by name

PlainTensors read_tensors(const std::vector<ValueId>& ids, const Program& program, const Storage& storage);

// The content of a safetensors file. `about`: what its metadata say besides who wrote it (model_card.h).
std::string format_tensors(const PlainTensors& tensors, const Metadata& about = {});

// Throws Error(data) with a line for each tensor that is missing in the file (of that path), unexpected, of another
// shape or no float. PyTorch's counters `*.num_batches_tracked` are passed over: no model of ours needs them; so is
// what begins with `passed_over`, unless that is empty.
void check_tensors(const Safetensors& file, const std::string& path, const std::vector<ValueId>& wanted,
                   const Program& program, std::string_view passed_over = "");
// Leaves out those that the storage does not have: another rank keeps them.
void store_tensors(const Safetensors& file, const std::vector<ValueId>& ids, const Program& program,
                   Storage& storage);

struct Pretrained {
  Safetensors file;
  std::int64_t new_weights =
      0;  // the last ones of weights_of(), which stay as they are: those of a new last layer
  std::vector<std::string>
      lines;  // for the user: what of the file does not simply become the model's weights
};

// Stores the weights of model.pretrained, if the job has one. The file may have PaddlePaddle's names (weight_names.h), and other input
// channels (input_channels.h). With model.new_head, the last layer may not fit the file. Throws as check_tensors, when nothing is
// stored, and as read_safetensors; Error(data) for NaN and infinity. Errors name the key.
std::optional<Pretrained> load_pretrained(const job::ModelSpec& model, const Program& program,
                                          Storage& storage);

// The name of one that holds NaN or infinity, "" when none does.
std::string first_not_finite(const PlainTensors& tensors);

// f32. Throws Error(create|io); Error(numerics) for weights with NaN or infinity, which are not written.
void save_weights(const std::string& path, const PlainTensors& weights, const Metadata& about = {},
                  WeightNames names = WeightNames::torchvision);

void mark_as_ours(Safetensors& file);  // save_weights does this with each file

// Throws Error(create) with the hint when a file is at `path` that is not marked as ours.
void require_own_weights(const std::string& path, const std::string& hint);

}  // namespace fleetrun::runtime
