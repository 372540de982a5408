// Whether a pass leaves the bits of a program as they are.
#pragma once
#include <cstring>
#include <map>
#include <string>

#include "runtime/graph/verify.h"
#include "runtime/passes/pass_context.h"
#include "support/gradient_check.h"

namespace fleetrun::runtime::test {

// What parameters' gradients, states and fetches hold after two runs on random inputs, as bits.
inline std::map<std::string, std::vector<std::uint32_t>> bits_of(const Program& program, Device& device) {
  ProgramRun run(program, all_ops(), device);
  Random random(5);
  for (std::size_t i = 0; i < program.values.size(); ++i) {
    const Value& value = program.values[i];
    const auto id = static_cast<ValueId>(i);
    if (value.dtype == DType::i32 && value.kind == ValueKind::feed)
      run.set(id, random_labels({value.shape, SampleInput::Fill::labels, 2}, random));
    else if (value.kind == ValueKind::feed || value.kind == ValueKind::parameter)
      run.set(id, random_floats({value.shape}, random));
    else if (value.kind == ValueKind::state)
      run.set(id, random_floats({value.shape, SampleInput::Fill::positive}, random));
  }
  run.run();
  run.run();
  std::map<std::string, std::vector<std::uint32_t>> all;
  const auto keep = [&](ValueId id) {
    const Floats values = run.get(id);
    std::vector<std::uint32_t>& bits = all[program.value(id).name];
    bits.resize(values.size());
    std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  };
  for (std::size_t i = 0; i < program.values.size(); ++i)
    if (program.values[i].kind == ValueKind::gradient || program.values[i].kind == ValueKind::state)
      keep(static_cast<ValueId>(i));
  for (const ValueId id : program.fetches) keep(id);
  return all;
}

struct PassRun {
  Program program;
  std::vector<std::string> messages;
};

inline PassRun after_pass(Program program, void (*pass)(Program&, const PassContext&)) {
  PassRun run = {std::move(program), {}};
  const job::StrategySpec strategy;
  pass(run.program, {.ops = all_ops(), .strategy = strategy, .messages = &run.messages});
  verify(run.program, all_ops());
  return run;
}

inline int count_ops(const Program& program, const std::string& type) {
  return static_cast<int>(
      std::count_if(program.ops.begin(), program.ops.end(), [&](const Op& op) { return op.type == type; }));
}

}  // namespace fleetrun::runtime::test
