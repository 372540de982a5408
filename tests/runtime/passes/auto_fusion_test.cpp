#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error/error.h"
#include "comm/collective/solo.h"
#include "runtime/compile/build_program.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/propagate_layouts.h"
#include "runtime/graph/program_text.h"
#include "runtime/ops/rules/elementwise_code.h"
#include "runtime/passes/passes.h"
#include "support/fused_bits.h"
#include "support/small_net.h"

namespace fleetrun::runtime::auto_fusion_test {
namespace {

using test::count_ops;

const std::string kValues =
    "feed x f32[2,3]\n"
    "feed y f32[2,3]\n"
    "feed small f32[3]\n"
    "activation a f32[2,3]\n"
    "activation b f32[2,3]\n"
    "activation c f32[2,3]\n"
    "activation d f32[2,3]\n"
    "activation s f32[3]\n";

std::string fused(const std::string& ops) {
  const Program program = test::after_pass(parse_program(kValues + ops, all_ops()), auto_fusion).program;
  return print_program(program, all_ops()).substr(kValues.size());
}

TEST_CASE("elementwise ops that read each other become one op") {
  CHECK(fused("elementwise_add x=x y=y -> sum=a {} forward\n"
              "relu x=a -> y=b {} forward\n"
              "scale x=b -> y=c {bias=0.1; scale=2.0} forward\n"
              "relu6 x=c -> y=d {threshold=6.0} forward\n") ==
        "elementwise_group x0=x x1=y -> y0=d {code=\"t0 = elementwise_add x0 x1; t1 = relu t0; "
        "t2 = scale t1 2 0.1; y0 = relu6 t2 6\"} forward\n");
}

TEST_CASE("what others read, or is fetched, comes out of the group") {
  CHECK(fused("fetch b\n"
              "relu x=x -> y=a {} forward\n"
              "relu x=a -> y=b {} forward\n"
              "relu_grad y=a dy=b -> dx=c {} forward\n"
              "dropout x=a -> y=d {key=1; p=0.5} forward\n") ==
        "fetch b\n"
        "elementwise_group x0=x -> y0=a y1=b y2=c {code=\"y0 = relu x0; y1 = relu y0; "
        "y2 = relu_grad y0 y1\"} forward\n"
        "dropout x=a -> y=d {key=1; p=0.5} forward\n");
}

TEST_CASE("gradients form groups of their own") {
  CHECK(fused("relu x=x -> y=a {} forward\n"
              "elementwise_add x=x y=y -> sum=b {} backward\n"
              "relu_grad y=a dy=b -> dx=c {} backward\n"
              "relu6_grad y=y dy=c -> dx=d {threshold=0.3} backward\n") ==
        "relu x=x -> y=a {} forward\n"
        "elementwise_group x0=x x1=y x2=a -> y0=d {code=\"t0 = elementwise_add x0 x1; t1 = relu_grad x2 t0; "
        "y0 = relu6_grad x1 t1 0.3\"} backward\n");
}

TEST_CASE("ops stay apart when neither reads the other, or when somebody else must run between them") {
  for (const std::string text : {"relu x=x -> y=a {} forward\n"
                                 "relu x=y -> y=b {} forward\n",
                                 "relu x=x -> y=a {} forward\n"
                                 "dropout x=a -> y=b {key=1; p=0.5} forward\n"
                                 "elementwise_add x=a y=b -> sum=c {} forward\n"})
    CHECK(fused(text) == text);
}

TEST_CASE("no group is larger than an op can be") {
  std::string values = "feed v0 f32[2]\n", chain;
  for (int i = 0; i < 20; ++i) {
    values += fmt::format("activation v{} f32[2]\n", i + 1);
    chain += fmt::format("relu x=v{} -> y=v{} {{}} forward\n", i, i + 1);
  }
  const test::PassRun run = test::after_pass(parse_program(values + chain, all_ops()), auto_fusion);
  CHECK(run.program.ops.size() == 2);
  CHECK(run.messages == std::vector<std::string>{"auto_fusion: detected 2 groups"});
}

TEST_CASE(
    "ResNet-50 has a group for each residual addition and for each sum of gradients before a relu_grad") {
  job::JobSpec job;
  job.model.name = job::ModelName::resnet50;
  job.data.batch_size = 2;
  job.strategy.build_strategy.enable_auto_fusion = true;
  job.strategy.build_strategy.fuse_bn_add_act_ops = false;
  std::vector<std::string> messages;
  const Program program = build_training_program(job, {.input_shape = {3, 224, 224}, .classes = 102},
                                                 all_ops(), {.messages = &messages});
  CHECK(std::count(messages.begin(), messages.end(), "auto_fusion: detected 31 groups") == 1);
  CHECK(count_ops(program, "elementwise_group") == 16 + 15);
  CHECK(count_ops(program, "relu") == 33);
  CHECK(count_ops(program, "relu_grad") == 34);
}

// Chains with every step, of images in blocks or plain; a scale with a bias must leave the padding of blocks alone.
Program net(std::int64_t channels, bool convolved) {
  Program program;
  Builder builder(program, all_ops());
  const ValueId image = builder.parameter("image", {3, channels, 9, 7}, {});
  const ValueId one = test::convolve(builder, "one", image, channels, convolved ? 3 : 1);
  const ValueId two = test::convolve(builder, "two", image, channels, 1);
  ValueId x = builder.op("add", "elementwise_add", {{"x", one}, {"y", two}});
  x = builder.op("relu", "relu", {{"x", x}});
  const ValueId y = builder.op("relu6", "relu6", {{"x", x}}, {{"threshold", 0.5}});
  x = builder.op("scale", "scale", {{"x", y}}, {{"scale", -0.3}, {"bias", 0.125}});
  x = builder.op("add2", "elementwise_add", {{"x", x}, {"y", y}});
  const ValueId w = builder.parameter("fc.w", {2, channels * 63}, {});
  const ValueId logits = builder.op("fc", "fc", {{"x", x}, {"w", w}});
  const ValueId label = builder.feed("label", {3}, DType::i32);
  const auto ce = builder.add(
      {.type = "softmax_with_cross_entropy", .inputs = {{"logits", logits}, {"label", label}}, .name = "ce"});
  append_backward(builder, builder.op("loss", "mean", {{"x", ce[1]}}));
  program.fetches = {program.find("loss"), y};
  return program;
}

TEST_CASE("a group has the bits of the ops that it is made of") {
  const auto device = make_cpu_device();
  for (const int team : {1, 2}) {
    device->enter_thread(team);
    for (const auto& [channels, convolved] :
         {std::pair{32, true}, std::pair{20, true}, std::pair{5, false}}) {
      INFO(channels << " channels, convolved " << convolved << ", team of " << team);
      const Program alone = net(channels, convolved);
      const Program together = test::after_pass(alone, auto_fusion).program;
      CHECK(count_ops(together, "elementwise_group") == 2);
      CHECK(count_ops(together, "relu6_grad") == 0);
      CHECK(test::bits_of(together, *device) == test::bits_of(alone, *device));
    }
  }
}

// a stays (it is fetched), so the first result takes the place of b, which a later step reads.
TEST_CASE("a result may take the place of an input that later steps read") {
  const std::string program_text =
      "feed x f32[1000]\nfeed y f32[1000]\n"
      "activation a f32[1000]\nactivation b f32[1000]\nactivation c f32[1000]\nactivation d f32[1000]\n"
      "activation e f32[1000]\n"
      "fetch a\nfetch d\nfetch e\n"
      "dropout x=x -> y=a {key=1; p=0.0} forward\n"
      "dropout x=y -> y=b {key=2; p=0.0} forward\n"
      "scale x=a -> y=c {bias=1.0; scale=2.0} forward\n"
      "elementwise_add x=b y=c -> sum=d {} forward\n"
      "dropout x=c -> y=e {key=3; p=0.0} forward\n";
  const auto device = make_cpu_device();
  const auto solo = comm::make_solo();
  Program program = test::after_pass(parse_program(program_text, all_ops()), auto_fusion).program;
  REQUIRE(count_ops(program, "elementwise_group") == 1);
  propagate_layouts(program, all_ops(), *device, {});
  Storage storage(program, *device, *solo);
  Executor executor(std::move(program), *device, storage, {solo.get()}, {.share_in_place = true});
  const std::vector<float> x(1000, 3.0F), y(1000, 5.0F);
  executor.bind("x", x.data());
  executor.bind("y", y.data());
  executor.run();
  for (const auto& [name, value] : {std::pair{"a", 3.0F}, std::pair{"d", 12.0F}, std::pair{"e", 7.0F}}) {
    const auto* values = static_cast<const float*>(executor.fetch(name));
    CHECK(std::all_of(values, values + 1000, [&](float found) { return found == value; }));
  }
}

TEST_CASE("steps that make no sense are quoted") {
  for (const std::string code :
       {"", "y0 = sinh x0", "y0 = relu t0", "y0 = relu x0 x1", "y0 = scale x0 1", "x0 = relu x0",
        "y9 = relu x0", "y0 = relu x0; y0 = relu x0", "y0 relu x0"}) {
    INFO(code);
    CHECK_THROWS_WITH_AS(parse_elementwise_code(code),
                         doctest::Contains("in the steps of an elementwise_group"), Error);
  }
  const std::string good = "t0 = scale x0 0.1 -3; y0 = elementwise_add t0 x1";
  CHECK(print_elementwise_code(parse_elementwise_code(good)) == good);
}

}  // namespace
}  // namespace fleetrun::runtime::auto_fusion_test
