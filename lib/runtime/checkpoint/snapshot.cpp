#include "runtime/checkpoint/snapshot.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "runtime/checkpoint/owned_tensors.h"
#include "runtime/checkpoint/rank_states.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/optim/loss_scaling.h"
#include "runtime/optim/merge_gradients.h"

namespace fleetrun::runtime {
namespace {

const Safetensors& file_of(const Checkpoint& checkpoint, const std::string& name) {
  const auto found = checkpoint.files.find(name);
  if (found == checkpoint.files.end())
    throw Error(ErrorKind::data, fmt::format("{} has no {}", checkpoint.path, name));
  return found->second;
}

// A state that nobody can go on from is not kept, least of all as the newest.
void check_finite(const PlainTensors& weights, const TrainingState& state) {
  if (const std::string name = first_not_finite(weights); !name.empty())
    throw Error(
        ErrorKind::numerics,
        fmt::format("{} holds NaN or infinity after step {}; this state is not saved", name, state.steps),
        "a lower optimizer.learning_rate or a warm-up often helps; checkpoints of earlier steps, if there are any, are good");
}

BufferView view_of(std::vector<float>& values) { return {values.data(), values.size(), DType::f32}; }

std::string merged_name(const Value& value, int rank) { return fmt::format("{}.{}", value.name, rank); }

// Every rank calls it; rank 0 gets the tensors.
void gather_merged_gradients(const Program& program, const Storage& storage, comm::Communicator& all_ranks,
                             PlainTensors& tensors) {
  for (const ValueId id : merged_gradients_of(program)) {
    const Value& value = program.value(id);
    for (int rank = 0; rank < all_ranks.size(); ++rank) {
      std::vector<float> values(static_cast<std::size_t>(count_of(value.shape)));
      if (all_ranks.rank() == rank) values = storage.read(value.name);
      if (rank != 0) all_ranks.broadcast(view_of(values), rank);
      if (all_ranks.rank() == 0) tensors[merged_name(value, rank)] = {value.shape, std::move(values)};
    }
  }
}

// Throws Error(data) unless the file has the gradients of each rank.
void check_merged(const Safetensors& file, const Program& program, int ranks, const std::string& path) {
  for (const ValueId id : merged_gradients_of(program))
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string name = merged_name(program.value(id), rank);
      const auto found = file.tensors.find(name);
      if (found == file.tensors.end() || found->second.shape != program.value(id).shape)
        throw Error(ErrorKind::data, fmt::format("{}/{} has no {} of the shape {}", path, kMergedFile, name,
                                                 describe(program.value(id).shape)));
    }
}

// Of one parameter: from rank 0 to the rank that saved it.
void share_merged(const Safetensors* file, const Value& value, Storage& storage,
                  comm::Communicator& all_ranks) {
  for (int rank = 0; rank < all_ranks.size(); ++rank) {
    std::vector<float> values(static_cast<std::size_t>(count_of(value.shape)));
    if (file != nullptr) values = to_floats(file->tensors.at(merged_name(value, rank)));
    all_ranks.broadcast(view_of(values), 0);
    if (all_ranks.rank() == rank) storage.write(value.name, values);
  }
}

// The scale moves at exactly so many steps in a row: a count past that, of a job with more of them, would never get there.
void keep_counts_in_reach(const Program& program, Storage& storage) {
  for (const ScaleCount& count : loss_scale_counts(program)) {
    const std::string& name = program.value(count.steps).name;
    const auto most = static_cast<float>(count.moves_at - 1);
    if (storage.read(name).front() > most) storage.write(name, {most});
  }
}

std::string difference_of_scales(const Safetensors& saved, const Program& program) {
  const bool had = saved.tensors.contains(std::string(kLossScale));
  const ValueId scale = program.find(kLossScale);
  const bool has = scale != kNone && program.value(scale).kind == ValueKind::state;
  if (had == has) return "";
  return has ? "the checkpoint has no loss scale: it starts as strategy.amp_configs says"
             : "the checkpoint's loss scale is left out: this training has none that follows overflows";
}

// A training that goes on keeps its classes.
void check_model(const Safetensors& model, const std::string& path, const std::vector<ValueId>& weights,
                 const Program& program) {
  try {
    check_tensors(model, path, weights, program);
  } catch (const Error& error) {
    if (error.hint().empty()) throw;
    throw Error(
        error.kind(), error.message(),
        fmt::format(
            "checkpoint.resume=never model.pretrained={} model.new_head=auto after the job file starts a new training from these weights",
            path));
  }
}

// The optimizer has the name of that of the job. So the reason for other tensors may be model.freeze.
void check_optimizer(const Safetensors& optimizer, const std::string& path, const Program& program) {
  try {
    check_tensors(optimizer, path + "/" + kOptimizerFile, optimizer_states_of(program), program, kLossScale);
  } catch (const Error& error) {
    throw Error(
        error.kind(), error.message(),
        fmt::format(
            "if model.freeze is another one now, checkpoint.resume=never model.pretrained={}/{} after the job file "
            "starts a training from the weights of the checkpoint",
            path, kModelFile));
  }
}

}  // namespace

Snapshot take_snapshot(const TrainingState& state, const Program& program, const Storage& storage,
                       comm::Communicator& all_ranks) {
  Snapshot snapshot = {.state = state};
  PlainTensors weights = collect_tensors(weights_of(program), program, storage, all_ranks);
  PlainTensors states = collect_tensors(optimizer_states_of(program), program, storage, all_ranks);
  PlainTensors merged;
  const bool between_updates = state.merged.batches > 0;
  if (between_updates) gather_merged_gradients(program, storage, all_ranks, merged);
  PlainTensors of_ranks = gather_rank_states(program, storage, all_ranks);
  const PlainTensors means = gather_means(program, storage, all_ranks);
  if (all_ranks.rank() != 0) return snapshot;
  for (PlainTensors* const tensors : {&weights, &states})
    for (auto& [name, tensor] : *tensors)
      if (const auto mean = means.find(name); mean != means.end()) tensor = mean->second;
  check_finite(weights, state);
  if (between_updates) snapshot.files[kMergedFile] = std::move(merged);
  if (!of_ranks.empty()) snapshot.files[kRankStatesFile] = std::move(of_ranks);
  snapshot.files[kModelFile] = std::move(weights);
  snapshot.files[kOptimizerFile] = std::move(states);
  return snapshot;
}

std::string load_checkpoint(const Checkpoint& checkpoint, const Program& program, Storage& storage) {
  const Safetensors &model = file_of(checkpoint, kModelFile),
                    &optimizer = file_of(checkpoint, kOptimizerFile);
  const std::vector<ValueId> weights = weights_of(program);
  check_model(model, checkpoint.path + "/" + kModelFile, weights, program);
  check_optimizer(optimizer, checkpoint.path, program);
  store_tensors(model, weights, program, storage);
  std::vector<ValueId> states = optimizer_states_of(program);
  std::erase_if(states, [&](ValueId id) { return !optimizer.tensors.contains(program.value(id).name); });
  store_tensors(optimizer, states, program, storage);
  keep_counts_in_reach(program, storage);
  return difference_of_scales(optimizer, program);
}

void share_owned(const Checkpoint* checkpoint, const Program& program, Storage& storage,
                 comm::Communicator& all_ranks) {
  const auto file = [&](const char* name) {
    return checkpoint == nullptr ? nullptr : &file_of(*checkpoint, name);
  };
  hand_out_owned(file(kModelFile), weights_of(program), program, storage, all_ranks);
  hand_out_owned(file(kOptimizerFile), optimizer_states_of(program), program, storage, all_ranks);
}

std::string leave_out_merged_gradients(Checkpoint& checkpoint, const TrainingState& now,
                                       const Program& program) {
  if (!checkpoint.files.contains(kMergedFile)) return "";
  const int batches = checkpoint.state.merged.batches;
  const bool has_all = std::ranges::all_of(merged_gradients_of(program), [&](ValueId id) {
    return checkpoint.files.at(kMergedFile).tensors.contains(merged_name(program.value(id), 0));
  });
  std::string why = difference_of_merging(checkpoint.state, now);
  if (why.empty() && !has_all) why = "they are not of all weights that this training changes";
  if (now.merged.k_steps == 1) why = "this training merges none";
  if (batches == 0) why = "the checkpoint does not say how many batches they are from";
  if (why.empty()) return "";
  checkpoint.files.erase(kMergedFile);
  checkpoint.state.merged.batches = 0;
  return fmt::format("the merged gradients{} are left out: {}; the next update comes after {}",
                     batches > 0 ? " of " + plural(batches, "batch", "es") : "", why,
                     plural(now.merged.k_steps, "batch", "es"));
}

int share_merged_gradients(const Checkpoint* checkpoint, const Program& program, Storage& storage,
                           comm::Communicator& all_ranks) {
  std::int64_t batches = checkpoint == nullptr ? 0 : checkpoint->state.merged.batches;
  all_ranks.broadcast({&batches, 1, DType::i64}, 0);
  if (batches == 0) return 0;
  const Safetensors* const file = checkpoint == nullptr ? nullptr : &file_of(*checkpoint, kMergedFile);
  if (file != nullptr) check_merged(*file, program, all_ranks.size(), checkpoint->path);
  for (const ValueId id : merged_gradients_of(program))
    share_merged(file, program.value(id), storage, all_ranks);
  return static_cast<int>(batches);
}

}  // namespace fleetrun::runtime
