// Ops that passes make, on the test's device beside the CPU: in both layouts, and in every type that they have kernels for.
#include <doctest/doctest.h>

#include <set>

#include <fmt/format.h>

#include "runtime/graph/backward.h"
#include "runtime/graph/builder.h"
#include "runtime/passes/passes.h"
#include "support/like_cpu.h"
#include "support/small_net.h"

namespace fleetrun::runtime::made_by_passes_test {
namespace {

using test::check_like_cpu;
using test::HowFar;

struct Precision {
  std::string dtype;   // empty: f32 as a convolution makes it
  std::string on_cpu;  // which has no kernels in f16
  HowFar far;
};

std::vector<Precision> precisions() {
  std::vector<Precision> all = {{"", "", {}}, {"bf16", "bf16", {1e-2, 1e-3}}};
  if (test::make_test_device()->name() != "CPU") all.push_back({"f16", "f32", {5e-3, 1e-3}});
  return all;
}

// The output of a convolution, cast to `dtype`. It keeps the layout of the convolution.
ValueId images(Builder& builder, const std::string& name, const Shape& shape, const std::string& dtype) {
  const ValueId fed = builder.feed(name, {shape[0], 2, shape[2], shape[3]});
  const ValueId w = builder.parameter(name + ".w", {shape[1], 2, 1, 1}, {});
  const ValueId made = builder.op(name + ".made", "conv2d", {{"x", fed}, {"w", w}}, test::convolution(1, 0));
  return dtype.empty() ? made : builder.op(name + ".narrow", "cast", {{"x", made}}, {{"dtype", dtype}});
}

void add_wide(Builder& builder, const std::string& name, ValueId x, const std::string& dtype) {
  if (!dtype.empty()) builder.op(name, "cast", {{"x", x}}, {{"dtype", std::string("f32")}});
}

Program synced_norm(const Shape& shape, const std::string& dtype) {
  Program program;
  Builder builder(program, all_ops());
  const Attributes settings = {{"epsilon", 1e-3}, {"momentum", 0.75}, {"training", true}};
  const Shape channels = {shape[1]};
  const ValueId x = images(builder, "x", shape, dtype), dy = images(builder, "dy", shape, dtype);
  const ValueId scale = builder.parameter("scale", channels, {}),
                bias = builder.parameter("bias", channels, {});
  const ValueId mean = builder.parameter("mean", channels, {});
  const ValueId variance = builder.parameter("variance.positive", channels, {});
  const ValueId sums =
      builder.add({.type = "sync_batch_norm_sums", .inputs = {{"x", x}, {"mean", mean}}, .name = "sums"})
          .front();
  const auto made = builder.add({.type = "sync_batch_norm",
                                 .inputs = {{"x", x},
                                            {"scale", scale},
                                            {"bias", bias},
                                            {"mean", mean},
                                            {"variance", variance},
                                            {"sums", sums}},
                                 .attributes = settings,
                                 .name = "bn"});
  add_wide(builder, "y", made[0], dtype);
  const ValueId back =
      builder
          .add({.type = "sync_batch_norm_grad_sums",
                .inputs = {{"x", x}, {"dy", dy}, {"batch_mean", made[3]}, {"batch_variance", made[4]}},
                .attributes = settings,
                .name = "grad"})
          .front();
  const ValueId dx = builder
                         .add({.type = "sync_batch_norm_grad",
                               .inputs = {{"x", x},
                                          {"dy", dy},
                                          {"scale", scale},
                                          {"batch_mean", made[3]},
                                          {"batch_variance", made[4]},
                                          {"sums", back}},
                               .attributes = settings,
                               .name = "dx.made"})
                         .front();
  add_wide(builder, "dx", dx, dtype);
  return program;
}

TEST_CASE("the parts of sync_batch_norm, with packs of pixels or channels and without") {
  for (const Shape& shape :
       {Shape{3, 5, 7, 7}, Shape{2, 12, 8, 10}, Shape{5, 70, 3, 3}, Shape{40, 4, 1, 1}, Shape{2, 3, 40, 40}})
    for (const Precision& precision : precisions()) {
      CAPTURE(precision.dtype);
      CAPTURE(shape[1]);
      check_like_cpu(synced_norm(shape, precision.dtype), synced_norm(shape, precision.on_cpu),
                     precision.far);
    }
}

const std::vector<Shape> kFewShapes = {{3, 5, 7, 7}, {2, 12, 8, 10}};

TEST_CASE("an addition with an activation, and its gradient") {
  const auto made = [](const Shape& shape, const std::string& dtype, const std::string& of,
                       const std::string& act) {
    Program program;
    Builder builder(program, all_ops());
    const ValueId x = images(builder, "x", shape, dtype), y = images(builder, "y", shape, dtype),
                  dy = images(builder, "dy", shape, dtype);
    const Attributes how = {{"of", of}, {"act", act}, {"scale", -1.5}, {"bias", 0.25}};
    const ValueId out = builder.op("out", "elementwise_add_act", {{"x", x}, {"y", y}}, how);
    add_wide(builder, "out.wide", out, dtype);
    add_wide(builder, "dx", builder.op("dx.made", "elementwise_add_act_grad", {{"y", x}, {"dy", dy}}), dtype);
    const ValueId with_more =
        builder.op("more.made", "elementwise_add_act_grad", {{"y", x}, {"dy", dy}, {"more", y}});
    add_wide(builder, "more", with_more, dtype);
    return program;
  };
  for (const Shape& shape : kFewShapes)
    for (const Precision& precision : precisions())
      for (const std::string of : {"sum", "y"})
        for (const std::string act : {"relu", "scale"}) {
          INFO(precision.dtype << " " << of << " " << act);
          check_like_cpu(made(shape, precision.dtype, of, act), made(shape, precision.on_cpu, of, act),
                         precision.far);
        }
}

TEST_CASE(
    "groups of elementwise ops: every step, results that are read late, and more of them than a pack has places for") {
  std::string many = "t0 = relu x0";
  for (int i = 1; i < 12; ++i) many += fmt::format("; t{} = scale t{} -0.75 0.125", i, i - 1);
  many += "; y0 = elementwise_add t0 t11";
  std::string held =
      "t0 = elementwise_add x0 x1; t1 = scale x0 2 0; t2 = scale x0 3 0; t3 = scale x0 4 0; t4 = relu x1; "
      "t5 = scale x1 2 0; t6 = scale x1 3 0; t7 = relu6 x1 0.25; t8 = elementwise_add t0 t1; "
      "t9 = elementwise_add t2 t3; t10 = elementwise_add t4 t5; t11 = elementwise_add t6 t7; "
      "t12 = elementwise_add t8 t9; t13 = elementwise_add t10 t11; y0 = elementwise_add t12 t13";
  const std::vector<std::string> codes = {
      "t0 = elementwise_add x0 x1; y0 = relu t0; y1 = scale t0 0.5 0.25; y2 = relu6 y1 0.125",
      "t0 = relu_grad x0 x1; t1 = relu6_grad x1 t0 0.25; y0 = elementwise_add t1 x2; y1 = elementwise_add y0 y0",
      many, held};
  for (const Shape& shape : kFewShapes)
    for (const std::string& code : codes) {
      INFO(code);
      Program program;
      Builder builder(program, all_ops());
      Arguments inputs;
      for (const std::string name : {"x0", "x1", "x2"})
        if (code.find(name) != std::string::npos) inputs.emplace_back(name, images(builder, name, shape, ""));
      std::vector<std::string> outputs;
      for (const std::string name : {"y0", "y1", "y2"})
        if (code.find(name) != std::string::npos) outputs.push_back(name);
      builder.add({.type = "elementwise_group",
                   .inputs = inputs,
                   .attributes = {{"code", code}},
                   .name = "group",
                   .outputs = outputs});
      check_like_cpu(program, program);
    }
}

TEST_CASE("depthwise convolutions of a rectified image, and their gradients") {
  struct Case {
    Shape x, kernel;
    Attributes settings;
  };
  const std::vector<Case> cases = {
      {{2, 12, 9, 10},
       {3, 3},
       {{"strides", Shape{1, 1}}, {"paddings", Shape{1, 1}}, {"dilations", Shape{1, 1}}}},
      {{3, 5, 11, 9},
       {5, 2},
       {{"strides", Shape{2, 3}}, {"paddings", Shape{0, 2, 1, 0}}, {"dilations", Shape{1, 2}}}}};
  for (const Case& one : cases) {
    Program program;
    Builder builder(program, all_ops());
    const std::int64_t channels = one.x[1];
    Attributes settings = one.settings;
    settings["groups"] = channels;
    const Shape weights = {channels, 1, one.kernel[0], one.kernel[1]};
    const ValueId x = images(builder, "x", one.x, ""), w = builder.parameter("w", weights, {});
    const ValueId y = builder.op(
        "y", "relu_depthwise", {{"x", x}, {"w", w}, {"b", builder.parameter("b", {channels}, {})}}, settings);
    const ValueId dy = images(builder, "dy", program.value(y).shape, "");
    settings["input_shape"] = one.x;
    settings["weight_shape"] = weights;
    builder.op("dx", "relu_depthwise_grad_input", {{"dy", dy}, {"w", w}, {"x", x}}, settings);
    builder.op("grad", "relu_depthwise_grad_weights", {{"x", x}, {"dy", dy}}, settings);
    check_like_cpu(program, program);
  }
}

TEST_CASE("dgc sends what the CPU sends, where many elements are as far from 0 as the last one, too") {
  for (const bool nesterov : {false, true})
    for (const double limit : {0.0, 0.25})
      for (const std::int64_t kept : {1, 700, 5000, 12'345}) {
        CAPTURE(kept);
        Program program;
        Builder builder(program, all_ops());
        const Shape shape = {61, 211};
        const Attributes settings = {{"mu", 0.9},
                                     {"use_nesterov", nesterov},
                                     {"weight_decay", limit == 0 ? 0.0 : 1e-3},
                                     {"limit", limit},
                                     {"ranks", std::int64_t{1}},
                                     {"rampup_begin_step", std::int64_t{0}},
                                     {"rampup_step", std::int64_t{1}},
                                     {"kept", Shape{kept}}};
        // A third of it is 0.125, half of it 0.
        const ValueId grad =
            builder.op("grad", "relu6", {{"x", builder.feed("spread", shape)}}, {{"threshold", 0.125}});
        const auto made = builder.add({.type = "dgc_select",
                                       .inputs = {{"grad", grad},
                                                  {"param", builder.parameter("param", shape, {})},
                                                  {"velocity", builder.state("velocity", shape, {}, kNone)},
                                                  {"residual", builder.state("residual", shape, {}, kNone)}},
                                       .attributes = settings,
                                       .name = "message"});
        builder.add({.type = "dgc_scatter",
                     .inputs = {{"grad", grad}, {"gathered", made.front()}},
                     .attributes = settings,
                     .name = "sum"});
        check_like_cpu(program, program);
      }
}

TEST_CASE("dgc_momentum is momentum before the ramp-up and SGD from then on") {
  for (const std::int64_t begin : {0, 1}) {
    CAPTURE(begin);
    Program program;
    Builder builder(program, all_ops());
    const Shape shape = {13, 7};
    builder.add({.type = "dgc_momentum",
                 .inputs = {{"param", builder.parameter("param", shape, {})},
                            {"grad", builder.feed("grad", shape)},
                            {"velocity", builder.parameter("velocity", shape, {})},
                            {"learning_rate", builder.feed("rate", {1})}},
                 .attributes = {{"mu", 0.9},
                                {"use_nesterov", false},
                                {"weight_decay", 1e-2},
                                {"rampup_begin_step", begin}},
                 .name = "update"});
    check_like_cpu(program, program);
  }
}

// Two depthwise convolutions of rectified images, and sums with what follows them.
Program unfused_net() {
  Program program;
  Builder builder(program, all_ops());
  const ValueId image = builder.feed("image", {2, 3, 8, 8});
  const auto relu = [&](const std::string& name, ValueId x) { return builder.op(name, "relu", {{"x", x}}); };
  const auto add = [&](const std::string& name, ValueId x, ValueId y) {
    return builder.op(name, "elementwise_add", {{"x", x}, {"y", y}});
  };
  ValueId x = test::convolve(builder, "conv", image, 12, 3);
  Attributes settings = test::convolution(1, 1);
  settings["groups"] = std::int64_t{12};
  const ValueId w = builder.parameter("depthwise.w", {12, 1, 3, 3}, {});
  x = builder.op("depthwise", "conv2d", {{"x", relu("first", x)}, {"w", w}}, settings);
  x = relu("rectified", add("sum", x, test::convolve(builder, "beside", image, 12, 1)));
  x = add("next", test::convolve(builder, "last", x, 12, 1), x);
  x = builder.op("bounded", "relu6",
                 {{"x", builder.op("scaled", "scale", {{"x", x}}, {{"scale", 2.0}, {"bias", 0.25}})}},
                 {{"threshold", 1.0}});
  append_backward(builder, builder.op("loss", "mean", {{"x", x}}));
  return program;
}

TEST_CASE("after passes have fused its ops, a network makes the same step as on the CPU") {
  Program program = unfused_net();
  const auto device = test::make_test_device();
  const OpNames ops = ops_of(device->kernels());
  const job::StrategySpec strategy;
  const PassContext context = {.ops = all_ops(), .strategy = strategy, .device_ops = &ops};
  for (const auto pass : {fuse_relu_depthwise_conv, fuse_elewise_add_act, auto_fusion})
    pass(program, context);
  std::set<std::string> types;
  for (const Op& op : program.ops) types.insert(op.type);
  for (const char* type : {"relu_depthwise", "relu_depthwise_grad_input", "relu_depthwise_grad_weights",
                           "elementwise_add_act", "elementwise_add_act_grad", "elementwise_group"})
    CHECK_MESSAGE(types.count(type) == 1, type);
  check_like_cpu(program, program);
}

}  // namespace
}  // namespace fleetrun::runtime::made_by_passes_test
