#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/compile/build_program.h"
#include "runtime/graph/program_text.h"
#include "runtime/passes/passes.h"
#include "support/fused_bits.h"
#include "support/small_net.h"

namespace fleetrun::runtime::fuse_elewise_add_act_test {
namespace {

using test::count_ops;

const std::string kValues =
    "feed x f32[2,3]\n"
    "feed y f32[2,3]\n"
    "feed a f32[2,3]\n"
    "feed b f32[2,3]\n"
    "activation s f32[2,3]\n"
    "activation out f32[2,3]\n"
    "activation out@GRAD f32[2,3]\n"
    "activation s@GRAD f32[2,3]\n";

std::string fused(const std::string& ops) {
  Program program = test::after_pass(parse_program(kValues + ops, all_ops()), fuse_elewise_add_act).program;
  return print_program(program, all_ops()).substr(kValues.size());
}

TEST_CASE(
    "an addition and the relu of its sum become one op, and so do the addition of gradients and relu_grad") {
  CHECK(fused("elementwise_add x=x y=y -> sum=s {} forward\n"
              "relu x=s -> y=out {} forward\n"
              "elementwise_add x=a y=b -> sum=out@GRAD {} backward\n"
              "relu_grad y=out dy=out@GRAD -> dx=s@GRAD {} backward\n") ==
        "elementwise_add_act x=x y=y -> out=out {act=\"relu\"; of=\"sum\"} forward\n"
        "elementwise_add_act_grad y=out dy=a more=b -> dx=s@GRAD {} backward\n");
}

TEST_CASE("a gradient that comes in one piece, or that others read, is not added on the way") {
  const std::string forward =
      "elementwise_add x=x y=y -> sum=s {} forward\n"
      "relu x=s -> y=out {} forward\n";
  const std::string fused_forward =
      "elementwise_add_act x=x y=y -> out=out {act=\"relu\"; of=\"sum\"} forward\n";
  CHECK(fused(forward + "relu_grad y=out dy=a -> dx=s@GRAD {} backward\n") ==
        fused_forward + "elementwise_add_act_grad y=out dy=a -> dx=s@GRAD {} backward\n");
  CHECK(fused("fetch out@GRAD\n" + forward +
              "elementwise_add x=a y=b -> sum=out@GRAD {} backward\n"
              "relu_grad y=out dy=out@GRAD -> dx=s@GRAD {} backward\n") ==
        "fetch out@GRAD\n" + fused_forward +
            "elementwise_add x=a y=b -> sum=out@GRAD {} backward\n"
            "elementwise_add_act_grad y=out dy=out@GRAD -> dx=s@GRAD {} backward\n");
}

TEST_CASE("scale of a sum") {
  CHECK(fused("elementwise_add x=x y=y -> sum=s {} forward\n"
              "scale x=s -> y=out {bias=1.0; scale=2.0} forward\n") ==
        "elementwise_add_act x=x y=y -> out=out {act=\"scale\"; bias=1.0; of=\"sum\"; scale=2.0} forward\n");
}

TEST_CASE(
    "an addition and the act of either side become one op, whose gradient looks at what the act looked at") {
  const std::string backward = "relu_grad y=s dy=a -> dx=s@GRAD {} backward\n";
  for (const char* sides : {"x=x y=s", "x=s y=x"})
    CHECK(fused("relu x=y -> y=s {} forward\n"
                "elementwise_add " +
                std::string(sides) + " -> sum=out {} forward\n" + backward) ==
          "elementwise_add_act x=x y=y -> out=out {act=\"relu\"; of=\"y\"} forward\n"
          "elementwise_add_act_grad y=y dy=a -> dx=s@GRAD {} backward\n");
  CHECK(fused("scale x=y -> y=s {bias=1.0; scale=2.0} forward\n"
              "elementwise_add x=x y=s -> sum=out {} forward\n") ==
        "elementwise_add_act x=x y=y -> out=out {act=\"scale\"; bias=1.0; of=\"y\"; scale=2.0} forward\n");
}

TEST_CASE("sums and acts that others read stay") {
  for (const std::string text : {"elementwise_add x=x y=y -> sum=s {} forward\n"
                                 "relu x=s -> y=out {} forward\n"
                                 "elementwise_add x=s y=a -> sum=s@GRAD {} forward\n",
                                 "relu x=y -> y=s {} forward\n"
                                 "elementwise_add x=x y=s -> sum=out {} forward\n"
                                 "elementwise_add x=s y=a -> sum=s@GRAD {} forward\n",
                                 "relu x=y -> y=s {} forward\n"
                                 "elementwise_add x=s y=s -> sum=out {} forward\n",
                                 "fetch s\n"
                                 "elementwise_add x=x y=y -> sum=s {} forward\n"
                                 "relu x=s -> y=out {} forward\n"})
    CHECK(fused(text) == text);
}

TEST_CASE("16 additions of ResNet-50 are followed by a relu, none when fuse_bn_add_act took them") {
  job::JobSpec job;
  job.model.name = job::ModelName::resnet50;
  job.data.batch_size = 2;
  job.strategy.build_strategy.fuse_elewise_add_act_ops = true;
  for (const bool taken : {false, true}) {
    job.strategy.build_strategy.fuse_bn_add_act_ops = taken;
    std::vector<std::string> messages;
    const Program program = build_training_program(job, {.input_shape = {3, 224, 224}, .classes = 102},
                                                   all_ops(), {.messages = &messages});
    const int found = taken ? 0 : 16;
    CHECK(count_ops(program, "elementwise_add_act") == found);
    CHECK(count_ops(program, "elementwise_add_act_grad") == found);
    CHECK(count_ops(program, "elementwise_add") ==
          1);  // of the gradients of the pool; the others are part of fused ops
    messages.erase(messages.begin(), messages.end() - 2);
    CHECK(messages ==
          std::vector<std::string>{
              fmt::format("fuse_elewise_add_act: detected {} subgraphs", found),
              fmt::format("fuse_elewise_add_act: detected {} subgraphs in the backward part", found)});
  }
}

// Additions with every act on the sum and on a side, some with two readers, of images in blocks or plain.
Program net(std::int64_t channels, bool convolved) {
  Program program;
  Builder builder(program, all_ops());
  const ValueId image = builder.parameter("image", {3, channels, 9, 7}, {});
  const ValueId other = builder.parameter("other", {3, channels, 9, 7}, {});
  ValueId x = convolved ? test::convolve(builder, "conv", image, channels, 3) : image;
  const auto add = [&](const std::string& name, ValueId a, ValueId b) {
    return builder.op(name, "elementwise_add", {{"x", a}, {"y", b}});
  };
  const Attributes scaling = {{"scale", -0.5}, {"bias", 0.25}};
  x = builder.op("r1", "relu", {{"x", add("s1", x, other)}});
  x = add("s2", builder.op("r2", "relu", {{"x", image}}), x);
  x = builder.op("k1", "scale", {{"x", add("s3", x, image)}}, scaling);
  x = add("s4", x, builder.op("k2", "scale", {{"x", other}}, scaling));
  x = builder.op("r3", "relu", {{"x", add("s5", x, image)}});
  const ValueId y =
      builder.op("c2", "fc", {{"x", x}, {"w", builder.parameter("c2.w", {2, channels * 63}, {})}});
  const ValueId z =
      builder.op("c3", "fc", {{"x", x}, {"w", builder.parameter("c3.w", {2, channels * 63}, {})}});
  const ValueId logits = add("logits", y, z);
  const ValueId label = builder.feed("label", {3}, DType::i32);
  const auto ce = builder.add(
      {.type = "softmax_with_cross_entropy", .inputs = {{"logits", logits}, {"label", label}}, .name = "ce"});
  append_backward(builder, builder.op("loss", "mean", {{"x", ce[1]}}));
  program.fetches.push_back(program.find("loss"));
  return program;
}

TEST_CASE("a fused addition and its gradient have the bits of the ops that it is made of") {
  const auto device = make_cpu_device();
  for (const auto& [channels, convolved] :
       {std::pair{32, true}, std::pair{20, true}, std::pair{5, false}, std::pair{16, false}}) {
    INFO(channels << " channels, convolved " << convolved);
    const Program alone = net(channels, convolved);
    const Program together = test::after_pass(alone, fuse_elewise_add_act).program;
    CHECK(count_ops(together, "elementwise_add_act") == 6);  // one of them adds gradients
    CHECK(count_ops(together, "elementwise_add_act_grad") == 3);
    CHECK(test::bits_of(together, *device) == test::bits_of(alone, *device));
  }
}

}  // namespace
}  // namespace fleetrun::runtime::fuse_elewise_add_act_test
