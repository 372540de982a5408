// Whether a pass leaves the bits of a program as they are.
#pragma once
#include <cstring>
#include <map>
#include <string>

#include "runtime/graph/backward.h"
#include "support/gradient_check.h"
#include "support/pass_text.h"

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

inline int count_ops(const Program& program, const std::string& type) {
  return static_cast<int>(
      std::count_if(program.ops.begin(), program.ops.end(), [&](const Op& op) { return op.type == type; }));
}

// Appends a loss for 3 images of 9 x 7 and `channels` channels that are fetched, too, and the backward part.
inline void end_net(Builder& builder, ValueId images, std::int64_t channels) {
  builder.program().fetches.push_back(images);
  const ValueId w = builder.parameter("fc.w", {2, channels * 63}, {});
  const ValueId logits = builder.op("fc", "fc", {{"x", images}, {"w", w}});
  const ValueId label = builder.feed("label", {3}, DType::i32);
  const auto ce = builder.add(
      {.type = "softmax_with_cross_entropy", .inputs = {{"logits", logits}, {"label", label}}, .name = "ce"});
  append_backward(builder, builder.op("loss", "mean", {{"x", ce[1]}}));
}

// That a fusion leaves the bits of net(channels, convolved) as they are, for one thread and two, and for images in whole and
// padded blocks of channels and in plain layout. `check_ops` looks at the fused program.
template <typename Net, typename CheckOps>
void check_fused_bits(const Net& net, PassFunction pass, const CheckOps& check_ops) {
  const auto device = make_cpu_device();
  for (const int team : {1, 2}) {
    device->enter_thread(team);
    for (const auto& images :
         {std::pair{32, true}, std::pair{20, true}, std::pair{5, false}, std::pair{16, false}}) {
      INFO(images.first << " channels, convolved " << images.second << ", team of " << team);
      const Program alone = net(images.first, images.second);
      const Program together = after_pass(alone, pass).program;
      check_ops(together);
      CHECK(bits_of(together, *device) == bits_of(alone, *device));
    }
  }
}

}  // namespace fleetrun::runtime::test
