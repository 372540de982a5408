#include "runtime/checkpoint/owned_tensors.h"

#include <utility>

#include "runtime/graph/owner_of.h"
#include "runtime/optim/average_weights.h"

namespace fleetrun::runtime {
namespace {

BufferView buffer_of(std::vector<float>& values) { return {values.data(), values.size(), DType::f32}; }

std::size_t element_count_of(const Value& value) { return static_cast<std::size_t>(count_of(value.shape)); }

}  // namespace

// An owner is a place in a group. In the first group it is a rank.
PlainTensors collect_tensors(const std::vector<ValueId>& ids, const Program& program, const Storage& storage,
                             comm::Communicator& all_ranks) {
  PlainTensors tensors;
  for (const ValueId id : ids) {
    const Value& value = program.value(id);
    const int owner = owner_of_user(program, id);
    const bool reads = all_ranks.rank() == (owner == kNone ? 0 : owner);
    std::vector<float> values;
    if (reads) values = storage.read(value.name);
    if (owner != kNone) {
      values.resize(element_count_of(value));
      all_ranks.broadcast(buffer_of(values), owner);
    }
    if (all_ranks.rank() == 0) tensors[value.name] = {value.shape, std::move(values)};
  }
  return tensors;
}

PlainTensors collect_weights(const Program& program, const Storage& storage, comm::Communicator& all_ranks,
                             Weights which) {
  PlainTensors weights = collect_tensors(weights_of(program), program, storage, all_ranks);
  if (which == Weights::trained) return weights;
  std::vector<ValueId> averages;
  const std::vector<ValueId> parameters = program.of_kind(ValueKind::parameter);
  for (const ValueId id : parameters) averages.push_back(program.find(average_name(program.value(id).name)));
  PlainTensors averaged = collect_tensors(averages, program, storage, all_ranks);
  if (all_ranks.rank() != 0) return {};
  for (const ValueId id : parameters) {
    const std::string& name = program.value(id).name;
    weights[name] = std::move(averaged.at(average_name(name)));
  }
  return weights;
}

void hand_out_owned(const Safetensors* file, const std::vector<ValueId>& ids, const Program& program,
                    Storage& storage, comm::Communicator& all_ranks) {
  for (const ValueId id : ids) {
    if (owner_of_user(program, id) == kNone) continue;
    const Value& value = program.value(id);
    std::vector<float> values(element_count_of(value));
    if (file != nullptr) values = to_floats(file->tensors.at(value.name));
    all_ranks.broadcast(buffer_of(values), 0);
    if (storage.has(value.name)) storage.write(value.name, values);
  }
}

}  // namespace fleetrun::runtime
