#include "runtime/checkpoint/rank_states.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "runtime/optim/local_training.h"
#include "runtime/optim/sparse_states.h"

namespace fleetrun::runtime {
namespace {

BufferView floats(std::vector<float>& values) { return {values.data(), values.size(), DType::f32}; }

std::string name_on(const Value& value, int rank) { return fmt::format("{}.{}", value.name, rank); }

// Weights that no op writes are frozen, and the same on all ranks.
std::vector<ValueId> changed_weights_of(const Program& program) {
  std::unordered_set<ValueId> written;
  for (const Op& op : program.ops) written.insert(op.outputs.begin(), op.outputs.end());
  std::vector<ValueId> weights = weights_of(program);
  std::erase_if(weights, [&](ValueId id) { return !written.contains(id); });
  return weights;
}

// What differs between ranks.
std::vector<ValueId> own_tensors_of(const Program& program) {
  if (!trains_locally(program)) {
    std::vector<ValueId> own = residuals_of(program);
    for (const ValueId id : sparse_velocities_of(program)) own.push_back(id);
    return own;
  }
  std::vector<ValueId> own = changed_weights_of(program);
  for (const ValueId id : optimizer_states_of(program)) own.push_back(id);
  return own;
}

// A mean of loss scales, or of their counts, would make no sense.
bool has_mean(const Program& program, ValueId id) {
  const Value& value = program.value(id);
  if (value.kind == ValueKind::parameter || value.of != kNone) return true;
  const std::vector<ValueId> weights = weights_of(program);
  return std::find(weights.begin(), weights.end(), id) != weights.end();
}

const Safetensors* rank_states_file(const Checkpoint* checkpoint) {
  if (checkpoint == nullptr) return nullptr;
  const auto found = checkpoint->files.find(kRankStatesFile);
  return found == checkpoint->files.end() ? nullptr : &found->second;
}

std::vector<float> values_in(const Safetensors& file, const std::string& name, const Value& value,
                             const std::string& path) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end() || found->second.shape != value.shape)
    throw Error(ErrorKind::data, fmt::format("{}/{} has no {} of the shape {}", path, kRankStatesFile, name,
                                             describe(value.shape)));
  return to_floats(found->second);
}

// Ranks that saved their tensors in this file.
int ranks_in(const Safetensors* file, const Value& value) {
  int ranks = 0;
  while (file != nullptr && file->tensors.contains(name_on(value, ranks))) ++ranks;
  return ranks;
}

// Rank 0 knows.
bool all_know(bool here, comm::Communicator& all_ranks) {
  std::int64_t answer = here ? 1 : 0;
  all_ranks.broadcast({&answer, 1, DType::i64}, 0);
  return answer != 0;
}

// Each rank's own tensors. Of what the saved training did not have (a weight that was frozen, a loss scale), all ranks have the same already.
void share_own(const Checkpoint* checkpoint, const Program& program, Storage& storage,
               comm::Communicator& all_ranks) {
  const Safetensors* const file = rank_states_file(checkpoint);
  for (const ValueId id : own_tensors_of(program)) {
    const Value& value = program.value(id);
    if (!all_know(ranks_in(file, value) > 0, all_ranks)) continue;
    for (int rank = 0; rank < all_ranks.size(); ++rank) {
      std::vector<float> values(static_cast<std::size_t>(count_of(value.shape)));
      if (file != nullptr) values = values_in(*file, name_on(value, rank), value, checkpoint->path);
      all_ranks.broadcast(floats(values), 0);
      if (all_ranks.rank() == rank) storage.write(value.name, values);
    }
  }
}

// The numbers of adaptive_localsgd go on. When all ranks start from the mean, it is as if they had just made it.
void share_schedule(const Checkpoint* checkpoint, const Value& schedule, bool from_mean, Storage& storage,
                    comm::Communicator& all_ranks) {
  constexpr std::size_t kSince = 1;  // of the op average_parameters
  const Safetensors* const file = rank_states_file(checkpoint);
  std::vector<float> values(static_cast<std::size_t>(count_of(schedule.shape)));
  if (file != nullptr && file->tensors.contains(schedule.name))
    values = values_in(*file, schedule.name, schedule, checkpoint->path);
  if (from_mean) values[kSince] = 0;
  all_ranks.broadcast(floats(values), 0);
  storage.write(schedule.name, values);
}

// The mean that `weight` had, which the ranks were made equal to last. A weight that was frozen still is that mean.
void share_snapshot(const Checkpoint* checkpoint, const Value& snapshot, const Value& weight,
                    Storage& storage, comm::Communicator& all_ranks) {
  const Safetensors* const file = rank_states_file(checkpoint);
  std::vector<float> values(static_cast<std::size_t>(count_of(snapshot.shape)));
  if (file != nullptr && file->tensors.contains(snapshot.name))
    values = values_in(*file, snapshot.name, snapshot, checkpoint->path);
  else if (file != nullptr)
    values = storage.read(weight.name);
  all_ranks.broadcast(floats(values), 0);
  storage.write(snapshot.name, values);
}

// What ranks of another number have not sent yet is for all to send: the mean, since each rank's share of an update is 1 / ranks.
void share_mean_residuals(const Checkpoint* checkpoint, const Program& program, std::int64_t saved,
                          Storage& storage, comm::Communicator& all_ranks) {
  for (const ValueId id : residuals_of(program)) {
    const Value& value = program.value(id);
    if (!all_know(ranks_in(rank_states_file(checkpoint), value) > 0, all_ranks)) continue;
    std::vector<float> mean(static_cast<std::size_t>(count_of(value.shape)));
    for (int rank = 0; checkpoint != nullptr && rank < saved; ++rank) {
      const std::vector<float> own =
          values_in(*rank_states_file(checkpoint), name_on(value, rank), value, checkpoint->path);
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += own[i] / static_cast<float>(saved);
    }
    all_ranks.broadcast(floats(mean), 0);
    storage.write(value.name, mean);
  }
}

}  // namespace

void average_over_ranks(std::vector<float>& values, comm::Communicator& all_ranks) {
  std::vector<float> first = values;
  all_ranks.broadcast(floats(first), 0);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= first[i];
  all_ranks.all_reduce(floats(values), comm::ReduceOp::sum);
  const auto ranks = static_cast<float>(all_ranks.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first[i] + values[i] / ranks;
}

PlainTensors gather_rank_states(const Program& program, const Storage& storage,
                                comm::Communicator& all_ranks) {
  PlainTensors tensors;
  for (const ValueId id : own_tensors_of(program)) {
    const Value& value = program.value(id);
    for (int rank = 0; rank < all_ranks.size(); ++rank) {
      std::vector<float> values(static_cast<std::size_t>(count_of(value.shape)));
      if (all_ranks.rank() == rank) values = storage.read(value.name);
      if (rank != 0) all_ranks.broadcast(floats(values), rank);
      if (all_ranks.rank() == 0) tensors[name_on(value, rank)] = {value.shape, std::move(values)};
    }
  }
  if (all_ranks.rank() == 0) tensors.merge(read_tensors(states_of_averaging(program), program, storage));
  return tensors;
}

PlainTensors gather_means(const Program& program, const Storage& storage, comm::Communicator& all_ranks) {
  PlainTensors means;
  for (const ValueId id : own_tensors_of(program)) {
    if (!has_mean(program, id)) continue;
    const Value& value = program.value(id);
    std::vector<float> values = storage.read(value.name);
    average_over_ranks(values, all_ranks);
    if (all_ranks.rank() == 0) means[value.name] = {value.shape, std::move(values)};
  }
  return means;
}

void equalise_velocities(const Program& program, std::int64_t steps, Storage& storage,
                         comm::Communicator& all_ranks) {
  if (steps >= steps_before_sparse(program)) return;
  std::vector<std::string> names;
  for (const ValueId id : sparse_velocities_of(program)) names.push_back(program.value(id).name);
  std::uint64_t own = storage.fingerprint_of(names);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(all_ranks.size()));
  all_ranks.all_gather({&own, 1, DType::i64}, {all.data(), all.size(), DType::i64});
  if (std::count(all.begin(), all.end(), own) == all_ranks.size()) return;
  for (const std::string& name : names) {
    std::vector<float> values = storage.read(name);
    average_over_ranks(values, all_ranks);
    storage.write(name, values);
  }
}

std::string share_rank_states(const Checkpoint* checkpoint, const Program& program, Storage& storage,
                              comm::Communicator& all_ranks) {
  const std::vector<ValueId> own = own_tensors_of(program);
  const Safetensors* const file = rank_states_file(checkpoint);
  // The file of another strategy has other tensors.
  std::string mean_only =
      file == nullptr ? "" : "the ranks go on with the mean of what each had saved for itself";
  if (own.empty()) return mean_only;
  std::int64_t saved = 0;  // by tensors that are in no checkpoint of another strategy
  for (const ValueId id : trains_locally(program) ? changed_weights_of(program) : residuals_of(program))
    saved = std::max<std::int64_t>(saved, ranks_in(file, program.value(id)));
  all_ranks.broadcast({&saved, 1, DType::i64}, 0);
  if (saved == 0) return mean_only;
  const bool from_mean = saved != all_ranks.size();
  for (const ValueId id : states_of_averaging(program)) {
    const Value& value = program.value(id);
    if (value.of == kNone)
      share_schedule(checkpoint, value, from_mean, storage, all_ranks);
    else if (!from_mean)
      share_snapshot(checkpoint, value, program.value(value.of), storage, all_ranks);
  }
  if (!from_mean) {
    share_own(checkpoint, program, storage, all_ranks);
    return "";
  }
  share_mean_residuals(checkpoint, program, saved, storage, all_ranks);
  return fmt::format("all ranks go on with the mean of what each of the {} had saved for itself",
                     plural(saved, "rank"));
}

}  // namespace fleetrun::runtime
