// Every kernel that takes bf16 against itself in f32, on inputs that bf16 holds exactly.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/number/half.h"
#include "runtime/graph/builder.h"
#include "support/gradient_check.h"
#include "support/leave_out.h"
#include "support/run_program.h"
#include "support/test_device.h"

namespace fleetrun::runtime::narrow_kernels_test {
namespace {

using test::Floats;

const std::vector<std::string> kWideInputs = {"scale", "bias", "mean", "variance"};

bool stays_wide(const std::string& op, const std::string& input) {
  return op.starts_with("batch_norm") && std::count(kWideInputs.begin(), kWideInputs.end(), input) > 0;
}

float to_bf16(float value) { return bf16_to_f32(f32_to_bf16(value)); }

// The op with its gradient; its inputs f32 feeds, which are cast where the op is to be narrow, and so are its outputs back.
struct BothWays {
  Program program;
  std::map<std::string, ValueId> inputs;
  std::map<std::string, ValueId> results;  // y, and the gradients by input
  ValueId seed = kNone;
};

class NarrowRule : public test::RecordedRule {
 public:
  using RecordedRule::RecordedRule;
  bool wants(std::string_view input) const override { return forward().has_input(input); }
};

BothWays build(const std::string& type, const Sample& sample, const std::string& output, bool narrow) {
  BothWays built;
  Builder builder(built.program, all_ops());
  const auto cast = [&](ValueId id, const char* dtype) {
    return builder.op(fmt::format("cast{}", built.program.ops.size()), "cast", {{"x", id}},
                      {{"dtype", std::string(dtype)}});
  };
  Arguments arguments;
  std::map<std::string, ValueId> given;
  for (const auto& [name, input] : sample.inputs) {
    built.inputs[name] = builder.feed(name, input.shape);
    given[name] = narrow && !stays_wide(type, name) ? cast(built.inputs[name], "bf16") : built.inputs[name];
    arguments.emplace_back(name, given[name]);
  }
  builder.add({.type = type, .inputs = arguments, .attributes = sample.attributes, .name = "out"});
  const OpDef& def = find_op(all_ops(), type);
  const Op op = built.program.ops.back();
  const ValueId made = op.outputs.at(static_cast<std::size_t>(def.output_index(output)));
  CHECK(built.program.value(made).dtype == (narrow ? DType::bf16 : DType::f32));
  built.results[output] = narrow ? cast(made, "f32") : made;
  built.seed = builder.feed("seed", Shape(built.program.value(made).shape));
  NarrowRule rule(builder, OpView(def, built.program, op), output,
                  narrow ? cast(built.seed, "bf16") : built.seed);
  def.gradient(rule);
  for (const auto& [name, gradient] : rule.gradients)
    if (built.program.value(gradient).kind == ValueKind::activation)
      built.results["d" + name] =
          built.program.value(gradient).dtype == DType::bf16 ? cast(gradient, "f32") : gradient;
  return built;
}

std::map<std::string, Floats> run(const BothWays& built, const std::map<std::string, Floats>& inputs,
                                  Device& device) {
  test::ProgramRun program(built.program, all_ops(), device);
  for (const auto& [name, id] : built.inputs) program.set(id, inputs.at(name));
  program.set(built.seed, inputs.at("seed"));
  program.run();
  std::map<std::string, Floats> results;
  for (const auto& [name, id] : built.results) results[name] = program.get(id);
  return results;
}

double distance(const Floats& a, const Floats& b) {
  Floats apart(a.size());
  std::transform(a.begin(), a.end(), b.begin(), apart.begin(), std::minus<float>());
  return test::norm(apart) / std::max(test::norm(a), 1e-6);
}

void compare(const std::string& type, const Sample& sample, const std::string& output, double tolerance) {
  const auto device = test::make_test_device();
  const BothWays wide = build(type, sample, output, false), narrow = build(type, sample, output, true);
  test::Random random(11);
  std::map<std::string, Floats> inputs;
  for (const auto& [name, input] : sample.inputs) inputs[name] = test::random_floats(input, random);
  inputs["seed"] = test::random_floats({wide.program.value(wide.seed).shape}, random);
  for (auto& [name, values] : inputs)
    if (!stays_wide(type, name))
      for (float& value : values) value = to_bf16(value);
  const auto in_f32 = run(wide, inputs, *device), in_bf16 = run(narrow, inputs, *device);
  for (const auto& [name, values] : in_f32) {
    CAPTURE(name);
    CHECK(distance(values, in_bf16.at(name)) < tolerance);
  }
}

// bf16 has 8 bits: half a unit in the last place is 1/512 of a value.
constexpr double kRounding = 1.0 / 256, kTwice = 1.0 / 100;

bool has_bf16() { return !make_cpu_device()->narrow_types().empty(); }

TEST_CASE("ops whose kernels take bf16 compute what those of f32 do, to the rounding of what they write") {
  if (!has_bf16()) LEAVE_OUT("this processor computes nothing in bf16");
  const std::map<std::string, std::pair<const char*, double>> ops = {
      {"conv2d", {"y", kTwice}},
      {"fc", {"y", kTwice}},
      {"batch_norm", {"y", kTwice}},
      {"batch_norm_act", {"y", kTwice}},
      {"batch_norm_add_act", {"y", kTwice}},
      {"relu", {"y", kRounding}},
      {"relu6", {"y", kRounding}},
      {"pool2d", {"y", kRounding}},
      {"elementwise_add", {"sum", kRounding}},
      {"elementwise_add_act", {"out", kRounding}},
      {"scale", {"y", kRounding}},
      {"dropout", {"y", kRounding}},
      {"concat", {"joined", kRounding}}};
  for (const auto& [type, how] : ops) {
    CAPTURE(type);
    int number = 0;
    for (const Sample& sample : find_op(all_ops(), type).samples()) {
      CAPTURE(++number);
      compare(type, sample, how.first, how.second);
    }
  }
}

Attributes pooling(const std::string& kind) {
  return {{"kind", kind},
          {"kernel", Shape{3, 3}},
          {"strides", Shape{2, 2}},
          {"paddings", Shape{1, 1}},
          {"exclusive", true}};
}

TEST_CASE("images of many channels and pixels, in the layouts of convolutions") {
  if (!has_bf16()) LEAVE_OUT("this processor computes nothing in bf16");
  // after a convolution of one pixel, so that the op finds the layout that convolutions of the type make
  for (const Shape& shape : {Shape{2, 64, 40, 40}, Shape{1, 272, 13, 17}, Shape{3, 40, 9, 9}}) {
    const auto device = test::make_test_device();
    for (const std::string kind : {"max", "average", "batch_norm", "batch_norm_act"}) {
      std::map<bool, Floats> made;
      for (const bool narrow : {false, true}) {
        Program program;
        Builder builder(program, all_ops());
        const auto cast = [&](ValueId id, const char* dtype) {
          return builder.op(builder.program().value(id).name + "." + dtype, "cast", {{"x", id}},
                            {{"dtype", std::string(dtype)}});
        };
        const ValueId image = builder.feed("image", shape), w = builder.feed("w", {shape[1], shape[1], 1, 1});
        const ValueId conv =
            builder.op("conv", "conv2d",
                       {{"x", narrow ? cast(image, "bf16") : image}, {"w", narrow ? cast(w, "bf16") : w}},
                       {{"strides", Shape{1, 1}},
                        {"paddings", Shape{0, 0}},
                        {"dilations", Shape{1, 1}},
                        {"groups", std::int64_t{1}}});
        std::vector<ValueId> factors;
        ValueId y = kNone;
        if (kind.starts_with("batch_norm")) {
          for (const char* name : {"scale", "bias", "mean", "variance"})
            factors.push_back(builder.feed(name, {shape[1]}));
          y = builder
                  .add({.type = kind,
                        .inputs = {{"x", conv},
                                   {"scale", factors[0]},
                                   {"bias", factors[1]},
                                   {"mean", factors[2]},
                                   {"variance", factors[3]}},
                        .attributes = {{"epsilon", 1e-5}, {"momentum", 0.9}, {"training", true}},
                        .name = "y"})
                  .front();
        } else {
          y = builder.op("y", "pool2d", {{"x", conv}}, pooling(kind));
        }
        const ValueId read = narrow ? cast(y, "f32") : y;
        test::ProgramRun run(program, all_ops(), *device);
        test::Random random(5);
        Floats pixels = test::random_floats({shape}, random),
               diagonal(static_cast<std::size_t>(shape[1] * shape[1]));
        for (float& pixel : pixels) pixel = to_bf16(pixel);
        for (std::int64_t c = 0; c < shape[1]; ++c) diagonal[static_cast<std::size_t>(c * shape[1] + c)] = 1;
        run.set(image, pixels);
        run.set(w, diagonal);
        for (const ValueId id : factors) run.set(id, Floats(static_cast<std::size_t>(shape[1]), 0.5F));
        run.run();
        made[narrow] = run.get(read);
      }
      CAPTURE(kind);
      CAPTURE(shape[1]);
      CHECK(distance(made[false], made[true]) < kTwice);
    }
  }
}

}  // namespace
}  // namespace fleetrun::runtime::narrow_kernels_test
