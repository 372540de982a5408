// Ops over lists of tensors of unlike sizes: what the test's device leaves is what the CPU leaves, and what ops of one tensor each
// would leave, bit by bit.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "runtime/graph/builder.h"
#include "runtime/passes/shared/join_lists.h"
#include "runtime/tensor/philox.h"
#include "support/gradient_check.h"
#include "support/run_program.h"
#include "support/test_device.h"

namespace fleetrun::runtime::many_tensors_test {
namespace {

using test::Floats;
using test::ProgramRun;

constexpr double kApart = 2e-6;  // of a tensor's largest element

// An op with lists. Those in `powers`, and all singles, have one element.
struct ListOp {
  std::string type;
  std::vector<std::string> lists, powers, singles;  // its inputs, in their order
  std::vector<std::string> written;                 // its outputs; one that is not an input is new
  Attributes attributes;
};

std::vector<ListOp> list_ops() {
  const Attributes moments = {{"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 1e-3}, {"weight_decay", 0.01}};
  std::vector<ListOp> ops = {
      {"sgd", {"param", "grad"}, {}, {"learning_rate"}, {"param"}, {{"weight_decay", 0.01}}},
      {"lars",
       {"param", "grad", "velocity"},
       {},
       {"learning_rate"},
       {"param", "velocity"},
       {{"mu", 0.9}, {"lars_coeff", 0.5}, {"weight_decay", 0.01}, {"epsilon", 0.1}}},
      {"average_weights",
       {"param", "average"},
       {},
       {"decay_pow"},
       {"average", "decay_pow"},
       {{"decay", 0.75}}},
      {"clip_by_value", {"grad"}, {}, {}, {"grad"}, {{"limit", 0.3}}},
      {"clip_by_norm", {"grad"}, {}, {}, {"grad"}, {{"limit", 2.0}}},
      {"zero_on_overflow", {"grad"}, {}, {"found"}, {"grad"}, {}},
      {"check_finite_and_unscale", {"x"}, {}, {"scale", "found"}, {"out", "found"}, {}}};
  for (const bool nesterov : {false, true})
    ops.push_back({"momentum",
                   {"param", "grad", "velocity"},
                   {},
                   {"learning_rate"},
                   {"param", "velocity"},
                   {{"mu", 0.9}, {"use_nesterov", nesterov}, {"weight_decay", 0.01}}});
  for (const char* type : {"adam", "adamw", "lamb"})
    ops.push_back({type,
                   {"param", "grad", "moment1", "moment2"},
                   {"beta1_pow", "beta2_pow"},
                   {"learning_rate"},
                   {"param", "moment1", "moment2", "beta1_pow", "beta2_pow"},
                   moments});
  return ops;
}

// Of both signs; moment2 has none below 0. Powers and singles lie between 0.25 and 0.75.
Floats numbers(const std::string& list, std::size_t tensor, std::int64_t count) {
  const bool is_factor =
      list.ends_with("_pow") || list == "learning_rate" || list == "scale" || list == "found";
  Floats values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float unit = unit_float(philox(std::hash<std::string>()(list), tensor, i)[0]);
    values[i] = is_factor ? 0.25F + unit / 2 : list == "moment2" ? unit : unit - 0.5F;
  }
  return values;
}

std::string name_of(const std::string& list, std::size_t tensor) {
  return fmt::format("{}/{}", list, tensor);
}

ValueId add_value(Program& program, const std::string& name, std::int64_t count, DType dtype = DType::f32) {
  return program.add_value({.name = name, .dtype = dtype, .shape = {count}});
}

// The tensors [first, last) as one op.
Program program_of(const ListOp& list_op, const std::vector<std::int64_t>& sizes, std::size_t first,
                   std::size_t last) {
  Program program;
  std::map<std::string, std::vector<ValueId>> arguments;
  const auto add_list = [&](const std::string& list, bool of_one) {
    for (std::size_t i = first; i < last; ++i)
      arguments[list].push_back(add_value(program, name_of(list, i), of_one ? 1 : sizes[i]));
  };
  for (const std::string& list : list_op.lists) add_list(list, false);
  for (const std::string& list : list_op.powers) add_list(list, true);
  for (const std::string& single : list_op.singles) arguments[single] = {add_value(program, single, 1)};
  Op op = {.type = list_op.type, .attributes = list_op.attributes};
  for (const std::vector<std::string>* names : {&list_op.lists, &list_op.powers, &list_op.singles})
    for (const std::string& name : *names)
      op.inputs.insert(op.inputs.end(), arguments[name].begin(), arguments[name].end());
  for (const std::string& name : list_op.written) {
    if (arguments.count(name) == 0) add_list(name, false);
    op.outputs.insert(op.outputs.end(), arguments[name].begin(), arguments[name].end());
  }
  program.ops.push_back(std::move(op));
  return program;
}

using Results = std::map<std::string, Floats>;

// All values of the program after the op.
void run_into(Results& results, const ListOp& op, const std::vector<std::int64_t>& sizes, std::size_t first,
              std::size_t last, Device& device) {
  ProgramRun run(program_of(op, sizes, first, last), all_ops(), device);
  const auto fill = [&](const std::string& list, bool of_one) {
    for (std::size_t i = first; i < last; ++i)
      run.set(run.program().find(name_of(list, i)), numbers(list, i, of_one ? 1 : sizes[i]));
  };
  for (const std::string& list : op.lists) fill(list, false);
  for (const std::string& list : op.powers) fill(list, true);
  for (const std::string& single : op.singles) run.set(run.program().find(single), numbers(single, 0, 1));
  run.run();
  for (const Value& value : run.program().values)
    results[value.name] = run.get(run.program().find(value.name));
}

Results run_together(const ListOp& op, const std::vector<std::int64_t>& sizes, Device& device) {
  Results results;
  run_into(results, op, sizes, 0, sizes.size(), device);
  return results;
}

void check_close(const Results& found, const Results& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (const auto& result : wanted) {
    const Floats &values = result.second, &other = found.at(result.first);
    REQUIRE(other.size() == values.size());
    double largest = 0, apart = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(values[i])));
      apart = std::max(apart, std::abs(static_cast<double>(values[i]) - static_cast<double>(other[i])));
    }
    CHECK_MESSAGE(apart <= kApart * largest, result.first);
  }
}

// Around the width of vectors, of blocks and of chunks.
const std::vector<std::int64_t> kSizes = {1, 5, 64, 3, 4096, 1, 4097, 12'345, 511, 512, 513, 2, 1023};

TEST_CASE("an op over many tensors of unlike sizes leaves what it leaves on the CPU") {
  const auto device = test::make_test_device();
  const auto cpu = make_cpu_device();
  cpu->enter_thread(1);
  for (const ListOp& op : list_ops()) {
    CAPTURE(op.type);
    check_close(run_together(op, kSizes, *device), run_together(op, kSizes, *cpu));
  }
}

TEST_CASE("an op over many tensors leaves the bits that ops of one tensor each leave") {
  const auto device = test::make_test_device();
  device->enter_thread(1);
  for (const ListOp& op : list_ops()) {
    CAPTURE(op.type);
    const Results together = run_together(op, kSizes, *device);
    Results alone;
    for (std::size_t i = 0; i < kSizes.size(); ++i) run_into(alone, op, kSizes, i, i + 1, *device);
    for (const std::vector<std::string>* lists : {&op.lists, &op.powers, &op.written})
      for (const std::string& list : *lists)
        for (std::size_t i = 0; i < kSizes.size(); ++i) {
          const std::string name = name_of(list, i);
          if (together.count(name) == 0) continue;  // no list
          CHECK_MESSAGE(alone.at(name) == together.at(name), name);
        }
  }
}

TEST_CASE("an op takes more tensors than a launch has room for") {
  const auto device = test::make_test_device();
  const auto cpu = make_cpu_device();
  cpu->enter_thread(1);
  std::vector<std::int64_t> sizes(1500, 3);
  sizes[700] = 1000;
  for (const ListOp& op : list_ops()) {
    CAPTURE(op.type);
    check_close(run_together(op, sizes, *device), run_together(op, sizes, *cpu));
  }
}

// Gradients of kSizes, and norms.
struct NormsRun {
  NormsRun(const std::string& type, const Attributes& attributes, const Floats& norms, Device& device)
      : run(program(type, attributes, norms.size()), all_ops(), device) {
    for (std::size_t i = 0; i < kSizes.size(); ++i)
      run.set(run.program().find(name_of("grad", i)), numbers("grad", i, kSizes[i]));
    run.set(run.program().find("norms"), norms);
    run.run();
  }

  Floats get(const std::string& name) const { return run.get(run.program().find(name)); }

 private:
  static Program program(const std::string& type, const Attributes& attributes, std::size_t places) {
    Program program;
    Op op = {.type = type, .attributes = attributes};
    for (std::size_t i = 0; i < kSizes.size(); ++i)
      op.inputs.push_back(add_value(program, name_of("grad", i), kSizes[i]));
    const ValueId norms = add_value(program, "norms", static_cast<std::int64_t>(places));
    op.outputs = type == "gradient_norms" ? std::vector<ValueId>{norms} : op.inputs;
    op.inputs.push_back(norms);
    program.ops.push_back(std::move(op));
    return program;
  }

  ProgramRun run;
};

TEST_CASE("norms of gradients go to their places") {
  const auto device = test::make_test_device();
  const NormsRun run("gradient_norms", {{"first", std::int64_t{2}}}, Floats(kSizes.size() + 3, 7.0F),
                     *device);
  const Floats norms = run.get("norms");
  for (std::size_t i = 0; i < kSizes.size(); ++i)
    CHECK(static_cast<double>(norms[i + 2]) ==
          doctest::Approx(test::norm(numbers("grad", i, kSizes[i]))).epsilon(kApart));
  for (const std::size_t other : {std::size_t{0}, std::size_t{1}, norms.size() - 1})
    CHECK(norms[other] == 7.0F);
}

TEST_CASE("gradients are scaled when their common norm is above the limit, and else stay as they are") {
  const auto device = test::make_test_device();
  for (const double limit : {1.0, 100.0}) {
    const NormsRun run("clip_by_global_norm", {{"limit", limit}}, {3, 4}, *device);
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      Floats wanted = numbers("grad", i, kSizes[i]);
      if (limit < 5)
        for (float& value : wanted) value *= static_cast<float>(limit / 5);
      CHECK(run.get(name_of("grad", i)) == wanted);
    }
  }
}

// Gradients of kSizes and of these types in turn, checked by one op.
struct CheckedRun {
  CheckedRun(const std::vector<DType>& types, Device& device) : run(program(types), all_ops(), device) {
    run.set(run.program().find("scale"), Floats{32});
    run.set(run.program().find("found"), Floats{0});
  }

  Floats get(const std::string& name) const { return run.get(run.program().find(name)); }

  static Program program(const std::vector<DType>& types) {
    Program program;
    Op check = {.type = "check_finite_and_unscale"};
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      const DType type = types[i % types.size()];
      const ValueId wide = add_value(program, name_of("wide", i), kSizes[i]);
      check.inputs.push_back(add_value(program, name_of("x", i), kSizes[i], type));
      check.outputs.push_back(add_value(program, name_of("out", i), kSizes[i]));
      program.ops.push_back({.type = "cast",
                             .inputs = {wide},
                             .outputs = {check.inputs.back()},
                             .attributes = {{"dtype", std::string(describe(type))}}});
    }
    const ValueId found = add_value(program, "found", 1);
    check.inputs.insert(check.inputs.end(), {add_value(program, "scale", 1), found});
    check.outputs.push_back(found);
    program.ops.push_back(std::move(check));
    return program;
  }

  ProgramRun run;
};

TEST_CASE("a NaN or infinity in any of many gradients is found, whatever their types") {
  const auto device = test::make_test_device();
  std::vector<DType> types = {DType::f32, DType::bf16};
  if (device->streams() != nullptr) types.push_back(DType::f16);  // the CPU computes nothing in it
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float odd : {96.0F, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()})
    for (const std::size_t place : {std::size_t{0}, std::size_t{7}, kSizes.size() - 1}) {
      CheckedRun checked(types, *device);
      for (std::size_t i = 0; i < kSizes.size(); ++i) {
        Floats values(static_cast<std::size_t>(kSizes[i]), 96.0F);
        if (i == place) values.back() = odd;
        checked.run.set(checked.run.program().find(name_of("wide", i)), values);
      }
      checked.run.run();
      CHECK(checked.get("found").front() == (odd == 96.0F ? 0.0F : 1.0F));
      for (std::size_t i = 0; i < kSizes.size(); ++i)
        if (i != place)
          CHECK(checked.get(name_of("out", i)) == Floats(static_cast<std::size_t>(kSizes[i]), 3.0F));
    }
}

TEST_CASE("merged gradients are handed over in each k-th step") {
  const auto device = test::make_test_device();
  constexpr std::int64_t kCount = 4099;
  Program program;
  Builder builder(program, all_ops());
  const ValueId grad = builder.feed("grad", {kCount}), merged = builder.feed("merged", {kCount});
  const ValueId out = builder
                          .add({.type = "merge_gradient",
                                .inputs = {{"grad", grad}, {"merged", merged}},
                                .attributes = {{"k_steps", std::int64_t{2}}, {"scale", 0.5}},
                                .name = "out"})
                          .front();
  ProgramRun run(program, all_ops(), *device);
  run.set(grad, Floats(kCount, 3.0F));
  run.set(merged, Floats(kCount, 0.0F));
  run.run();
  CHECK(run.get(merged) == Floats(kCount, 3.0F));
  run.context().merge_step = 1;
  run.run();
  CHECK(run.get(merged) == Floats(kCount, 0.0F));
  CHECK(run.get(out) == Floats(kCount, 3.0F));
}

TEST_CASE("gradients in a narrow type round as casts do") {
  const auto device = test::make_test_device();
  for (const char* type : {"bf16", "f16"}) {
    Program program;
    Builder builder(program, all_ops());
    const Attributes to = {{"dtype", std::string(type)}};
    std::vector<ValueId> gradients, narrow, cast;
    for (const std::int64_t count : {1001, 7}) {
      const auto name = [count](const char* of) { return of + std::to_string(count); };
      gradients.push_back(builder.feed(name("grad"), {count}));
      const ValueId param = builder.feed(name("param"), {count});
      narrow.push_back(
          builder.op(name("narrow"), "cast_gradient", {{"grad", gradients.back()}, {"param", param}}, to));
      cast.push_back(builder.op(name("cast"), "cast", {{"x", gradients.back()}}, to));
    }
    const OpDef& def = find_op(all_ops(), "cast_gradient");
    const Op joined = join_lists({{def, program, program.ops[0]}, {def, program, program.ops[2]}});
    program.ops = {joined, program.ops[1], program.ops[3]};
    ProgramRun run(program, all_ops(), *device);
    for (const ValueId gradient : gradients)
      run.set(gradient, numbers("grad", gradient, count_of(program.value(gradient).shape)));
    run.run();
    for (std::size_t i = 0; i < narrow.size(); ++i)
      CHECK(run.get<std::uint16_t>(narrow[i]) == run.get<std::uint16_t>(cast[i]));
  }
}

}  // namespace
}  // namespace fleetrun::runtime::many_tensors_test
