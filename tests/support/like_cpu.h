// A program on the test's device beside the CPU.
#pragma once
#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "runtime/tensor/philox.h"
#include "support/gradient_check.h"
#include "support/run_program.h"
#include "support/test_device.h"

namespace fleetrun::runtime::test {

// From -0.5 to 0.5, others for each name.
inline Floats numbers(const std::string& name, std::size_t count) {
  Floats values(count);
  const std::uint64_t stream = std::hash<std::string>()(name);
  for (std::size_t i = 0; i < count; ++i) values[i] = unit_float(philox(7, stream, i)[0]) - 0.5F;
  return values;
}

// Feeds and parameters by their names, then one run. Names that end in "positive" get numbers above 0.
inline void run_with_numbers(ProgramRun& run) {
  for (std::size_t i = 0; i < run.program().values.size(); ++i) {
    const Value& value = run.program().values[i];
    const auto count = static_cast<std::size_t>(count_of(value.shape));
    if (value.kind != ValueKind::feed && value.kind != ValueKind::parameter) continue;
    Floats values = numbers(value.name, count);
    if (value.name.ends_with("positive"))
      for (float& number : values) number += 1.0F;
    if (value.dtype == DType::i32)
      run.set(static_cast<ValueId>(i), std::vector<std::int32_t>(count, 3));
    else
      run.set(static_cast<ValueId>(i), values);
  }
  run.run();
}

struct HowFar {
  double apart = 1e-4;    // of a tensor's norm
  double nothing = 1e-5;  // what rounding leaves of a tensor that is 0: of a bias in front of batch_norm
};

// Every f32 value of the program itself, after a run on the test's device, is that of the CPU after a run of `on_cpu`, which has
// the same values.
inline void check_like_cpu(const Program& program, const Program& on_cpu, const HowFar& allowed = {}) {
  const auto device = make_test_device();
  const auto cpu = make_cpu_device();
  cpu->enter_thread(1);
  ProgramRun ours(program, all_ops(), *device), theirs(on_cpu, all_ops(), *cpu);
  run_with_numbers(ours);
  run_with_numbers(theirs);
  for (std::size_t i = 0; i < program.values.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (program.value(id).dtype != DType::f32 || on_cpu.value(id).dtype != DType::f32) continue;
    INFO(program.value(id).name);
    const Floats wanted = theirs.get(id), got = ours.get(id);
    Floats apart(wanted.size());
    for (std::size_t j = 0; j < wanted.size(); ++j) apart[j] = got[j] - wanted[j];
    CHECK(norm(apart) <= allowed.apart * norm(wanted) + allowed.nothing);
  }
}

inline void check_like_cpu(const Program& program) { check_like_cpu(program, program); }

}  // namespace fleetrun::runtime::test
