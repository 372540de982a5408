// Runs a program on the CPU in the order of its ops, every value in memory of its own: what tests of single
// ops need, without the executor's planning.
#pragma once
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/exec/propagate_layouts.h"
#include "runtime/graph/op_def.h"
#include "runtime/graph/program.h"
#include "runtime/kernels/device.h"

namespace fleetrun::runtime::test {

using Floats = std::vector<float>;

inline double sum(const Floats& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

class ProgramRun {
 public:
  // Decides layouts (reorders are put in), makes kernels, allocates.
  ProgramRun(Program program, const OpTable& ops, Device& device)
      : program_(std::move(program)), device_(device) {
    propagate_layouts(program_, ops, device_, {});
    for (const Value& value : program_.values) memories_.push_back(device_.allocate(value.bytes()));
    for (const auto& memory : memories_) addresses_.push_back(memory->data());
    for (const Op& op : program_.ops) {
      kernels_.push_back(
          device_.kernels().at(op.type).make(OpView(find_op(ops, op.type), program_, op), device_));
      scratches_.push_back(device_.allocate(kernels_.back()->scratch_bytes()));
    }
    context_.data = addresses_.data();
    context_.seed = 1;
  }

  // As when an arena is given back and made anew: every value elsewhere, its bytes kept.
  void move_to_new_memory() {
    for (std::size_t i = 0; i < memories_.size(); ++i) {
      const std::size_t bytes = program_.values[i].bytes();
      auto moved = device_.allocate(bytes);
      std::memcpy(moved->data(), memories_[i]->data(), bytes);
      memories_[i] = std::move(moved);
      addresses_[i] = memories_[i]->data();
    }
  }

  const Program& program() const { return program_; }
  const Kernel& kernel(std::size_t op) const { return *kernels_.at(op); }
  RunContext& context() { return context_; }

  template <typename T>
  void set(ValueId id, const std::vector<T>& plain) {
    device_.from_plain(program_.value(id), plain.data(), addresses_.at(static_cast<std::size_t>(id)));
  }

  template <typename T = float>
  std::vector<T> get(ValueId id) const {
    std::vector<T> plain(static_cast<std::size_t>(count_of(program_.value(id).shape)));
    device_.to_plain(program_.value(id), addresses_.at(static_cast<std::size_t>(id)), plain.data());
    return plain;
  }

  // Of all f32 in the value's memory, the padding of its layout included.
  double sum_of_memory(ValueId id) const {
    const auto* values = static_cast<const float*>(addresses_.at(static_cast<std::size_t>(id)));
    return sum(Floats(values, values + program_.value(id).bytes() / sizeof(float)));
  }

  void run() {
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      context_.scratch = scratches_[i]->data();
      kernels_[i]->run(context_);
    }
  }

  // "fc relu reorder", in the order in which they run.
  std::string op_types() const {
    std::string types;
    for (const Op& op : program_.ops) types += (types.empty() ? "" : " ") + op.type;
    return types;
  }

 private:
  Program program_;
  Device& device_;
  std::vector<std::unique_ptr<comm::Memory>> memories_;
  std::vector<void*> addresses_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::unique_ptr<comm::Memory>> scratches_;
  RunContext context_;
};

}  // namespace fleetrun::runtime::test
