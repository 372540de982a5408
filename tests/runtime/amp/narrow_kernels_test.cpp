// Every kernel that takes a narrow type against itself in f32, on inputs that the narrow type holds exactly. On the test's device.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/number/dtype.h"
#include "runtime/graph/builder.h"
#include "support/gradient_check.h"
#include "support/leave_out.h"
#include "support/narrow_ops.h"
#include "support/run_program.h"
#include "support/test_device.h"

namespace fleetrun::runtime::narrow_kernels_test {
namespace {

using test::cast, test::Floats, test::stays_wide;

// The op with its gradient; its inputs f32 feeds, which are cast where the op is to be narrow, and so are its outputs back.
struct BothWays {
  Program program;
  std::map<std::string, ValueId> inputs;
  std::map<std::string, ValueId> results;  // y, and the gradients by input
  ValueId seed = kNone;
};

BothWays build(const std::string& type, const Sample& sample, const std::string& output, DType computes_in) {
  const bool narrow = computes_in != DType::f32;
  BothWays built;
  Builder builder(built.program, all_ops());
  Arguments arguments;
  std::map<std::string, ValueId> given;
  for (const auto& [name, input] : sample.inputs) {
    built.inputs[name] = builder.feed(name, input.shape);
    given[name] = narrow && !stays_wide(type, name) ? cast(builder, built.inputs[name], computes_in)
                                                    : built.inputs[name];
    arguments.emplace_back(name, given[name]);
  }
  builder.add({.type = type, .inputs = arguments, .attributes = sample.attributes, .name = "out"});
  const OpDef& def = find_op(all_ops(), type);
  const Op op = built.program.ops.back();
  const ValueId made = op.outputs.at(static_cast<std::size_t>(def.output_index(output)));
  CHECK(built.program.value(made).dtype == computes_in);
  built.results[output] = narrow ? cast(builder, made, DType::f32) : made;
  built.seed = builder.feed("seed", Shape(built.program.value(made).shape));
  test::RecordedRule rule(builder, OpView(def, built.program, op), output,
                          narrow ? cast(builder, built.seed, computes_in) : built.seed);
  def.gradient(rule);
  for (const auto& [name, gradient] : rule.gradients)
    if (built.program.value(gradient).kind == ValueKind::activation)
      built.results["d" + name] =
          built.program.value(gradient).dtype == DType::f32 ? gradient : cast(builder, gradient, DType::f32);
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

void compare(const std::string& type, const Sample& sample, const std::string& output, DType narrow_type,
             double tolerance, Device& device) {
  const BothWays wide = build(type, sample, output, DType::f32),
                 narrow = build(type, sample, output, narrow_type);
  test::Random random(11);
  std::map<std::string, Floats> inputs;
  for (const auto& [name, input] : sample.inputs) inputs[name] = test::random_floats(input, random);
  inputs["seed"] = test::random_floats({wide.program.value(wide.seed).shape}, random);
  for (auto& [name, values] : inputs)
    if (!stays_wide(type, name))
      for (float& value : values) value = rounded_to(narrow_type, value);
  const auto in_f32 = run(wide, inputs, device), in_narrow = run(narrow, inputs, device);
  for (const auto& result : in_f32) {
    CAPTURE(result.first);
    CHECK(distance(result.second, in_narrow.at(result.first)) < tolerance);
  }
}

constexpr double kRounding = 2, kTwice = 5;  // times the rounding of the type

// By op: the output with the gradient, and the tolerance.
const std::map<std::string, std::pair<const char*, double>>& narrow_ops() {
  static const std::map<std::string, std::pair<const char*, double>> ops = {
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
  return ops;
}

TEST_CASE("every narrow kernel computes what the kernel in f32 computes, up to rounding") {
  const auto device = test::make_test_device();
  if (device->narrow_types().empty()) LEAVE_OUT("this device computes in f32 only");
  for (const DType narrow : device->narrow_types())
    for (const auto& entry : narrow_ops()) {
      const std::string& type = entry.first;
      const auto& how = entry.second;
      CAPTURE(describe(narrow));
      CAPTURE(type);
      int number = 0;
      for (const Sample& sample : find_op(all_ops(), type).samples()) {
        CAPTURE(++number);
        compare(type, sample, how.first, narrow, how.second * test::rounding_of(narrow), *device);
      }
    }
}

TEST_CASE("every op that strategy.amp can make narrow, and every fusion of such an op, is among them") {
  for (const auto& entry : all_ops()) {
    const std::string& name = entry.first;
    CAPTURE(name);
    const bool fusion = name.ends_with("_act");
    if (fusion || test::can_be_narrow(name)) CHECK(narrow_ops().count(name) == 1);
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
  const auto device = test::make_test_device();
  if (device->narrow_types().empty()) LEAVE_OUT("this device computes in f32 only");
  // after a convolution of one pixel, so that the op finds the layout that convolutions of the type make
  for (const Shape& shape : {Shape{2, 64, 40, 40}, Shape{1, 272, 13, 17}, Shape{3, 40, 9, 9}}) {
    for (const std::string kind : {"max", "average", "batch_norm", "batch_norm_act"}) {
      std::map<DType, Floats> made;
      std::vector<DType> types = device->narrow_types();
      types.push_back(DType::f32);
      for (const DType type : types) {
        const bool narrow = type != DType::f32;
        Program program;
        Builder builder(program, all_ops());
        const ValueId image = builder.feed("image", shape), w = builder.feed("w", {shape[1], shape[1], 1, 1});
        const ValueId conv = builder.op(
            "conv", "conv2d",
            {{"x", narrow ? cast(builder, image, type) : image}, {"w", narrow ? cast(builder, w, type) : w}},
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
        const ValueId read = narrow ? cast(builder, y, DType::f32) : y;
        test::ProgramRun run(program, all_ops(), *device);
        test::Random random(5);
        Floats pixels = test::random_floats({shape}, random),
               diagonal(static_cast<std::size_t>(shape[1] * shape[1]));
        for (float& pixel : pixels) pixel = rounded_to(DType::bf16, pixel);  // f16 holds them, too
        for (std::int64_t c = 0; c < shape[1]; ++c) diagonal[static_cast<std::size_t>(c * shape[1] + c)] = 1;
        run.set(image, pixels);
        run.set(w, diagonal);
        for (const ValueId id : factors) run.set(id, Floats(static_cast<std::size_t>(shape[1]), 0.5F));
        run.run();
        made[type] = run.get(read);
      }
      CAPTURE(kind);
      CAPTURE(shape[1]);
      for (const DType type : device->narrow_types()) {
        CAPTURE(describe(type));
        CHECK(distance(made[DType::f32], made[type]) < kTwice * test::rounding_of(type));
      }
    }
  }
}

}  // namespace
}  // namespace fleetrun::runtime::narrow_kernels_test
