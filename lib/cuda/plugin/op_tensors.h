// The lists of an op as kernels over many tensors take them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

#include "cuda/plugin/multi_tensor.h"
#include "cuda/plugin/simple_kernel.h"

namespace fleetrun::cuda {

template <std::size_t arrays>
class OpTensors {
 public:
  using List = std::span<const TensorArrays<static_cast<int>(arrays)>>;

  OpTensors() = default;

  // The lists that are arguments with these names. Fails unless the first is f32.
  OpTensors(const OpView& op, const std::array<std::string_view, arrays>& arguments) {
    const std::size_t tensors = op.input_ids(arguments.front()).size();
    for (std::size_t i = 0; i < tensors; ++i) {
      std::array<ValueId, arrays> ids;
      for (std::size_t k = 0; k < arrays; ++k) ids[k] = op.input_ids(arguments[k])[i];
      add(ids, elements_of(op, op.program().value(ids.front())));
    }
  }

  void add(const std::array<ValueId, arrays>& ids, std::int64_t count) {
    ids_.push_back(ids);
    tensors_.push_back({{}, count});
  }

  // Addresses may change from run to run: memory of activations can be given back, and feeds come from elsewhere.
  List in(const RunContext& context) {
    for (std::size_t i = 0; i < ids_.size(); ++i)
      for (std::size_t k = 0; k < arrays; ++k)
        if (ids_[i][k] != runtime::kNone) tensors_[i].data[k] = context.data[ids_[i][k]];
    return tensors_;
  }

  std::size_t size() const { return tensors_.size(); }
  std::int64_t elements() const {
    return std::accumulate(tensors_.begin(), tensors_.end(), std::int64_t{0},
                           [](std::int64_t sum, const auto& tensor) { return sum + tensor.count; });
  }

 private:
  std::vector<std::array<ValueId, arrays>> ids_;  // kNone: not a value
  std::vector<TensorArrays<static_cast<int>(arrays)>> tensors_;
};

}  // namespace fleetrun::cuda
