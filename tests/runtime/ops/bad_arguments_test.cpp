// What each op says about arguments that do not fit.
#include <cstdint>

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "runtime/graph/builder.h"

namespace fleetrun::runtime::bad_arguments_test {
namespace {

struct Try {
  std::string type;
  std::map<std::string, Shape> inputs;
  Attributes attributes;
  std::string label;  // the input that is i32
};

std::string words_of(const Try& bad) {
  Program program;
  Builder builder(program, all_ops());
  Arguments arguments;
  for (const auto& [name, shape] : bad.inputs)
    arguments.emplace_back(name, builder.feed(name, shape, name == bad.label ? DType::i32 : DType::f32));
  try {
    builder.add({.type = bad.type, .inputs = arguments, .attributes = bad.attributes, .name = "out"});
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.message();
  }
  return "no error";
}

Attributes window(Shape strides, Shape paddings, Shape dilations, std::int64_t groups) {
  return {{"strides", strides}, {"paddings", paddings}, {"dilations", dilations}, {"groups", groups}};
}

Attributes pooling(const std::string& kind, Shape kernel, Shape paddings) {
  return {{"kind", kind},
          {"kernel", kernel},
          {"strides", Shape{1, 1}},
          {"paddings", paddings},
          {"exclusive", true}};
}

TEST_CASE("fc names the shapes that do not fit") {
  CHECK(words_of({"fc", {{"x", {2, 3}}, {"w", {4, 5}}}, {}, ""}) ==
        "fc (out): w is [4,5], wanted [out, 3] for x [2,3]");
  CHECK(words_of({"fc", {{"x", {2, 3}}, {"w", {4, 3}}, {"b", {5}}}, {}, ""}) ==
        "fc (out): b is [5], wanted [4]");
  CHECK(words_of({"fc", {{"x", {6}}, {"w", {4, 6}}}, {}, ""}) ==
        "fc (out): x is [6], wanted [N, features...]");
}

TEST_CASE("crop_mirror_normalize wants bytes, a view of each image, and numbers for each channel") {
  const Attributes attributes = {{"mean", std::vector<double>{1, 2, 3}},
                                 {"scale", std::vector<double>{1, 2, 3}},
                                 {"dtype", std::string("f32")}};
  CHECK(words_of({"crop_mirror_normalize", {{"x", {2, 3, 4, 4}}, {"view", {2, 4}}}, attributes, "view"}) ==
        "crop_mirror_normalize (out): x is f32 [2,3,4,4], wanted u8 [N,C,H,W]");
  Program program;
  Builder builder(program, all_ops());
  const ValueId x = builder.feed("x", {2, 3, 4, 4}, DType::u8);
  const auto complaint = [&](const Shape& view, Attributes given) {
    static int count = 0;
    const ValueId views = builder.feed("view" + std::to_string(++count), view, DType::i32);
    try {
      builder.op("y" + std::to_string(count), "crop_mirror_normalize", {{"x", x}, {"view", views}},
                 std::move(given));
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("no error");
  };
  CHECK(complaint({2, 3}, attributes) == "crop_mirror_normalize (y1): view is i32 [2,3], wanted i32 [2,4]");
  Attributes two = attributes;
  two["scale"] = std::vector<double>{1, 2};
  CHECK(complaint({2, 4}, two) ==
        "crop_mirror_normalize (y2): scale has 2 numbers, wanted one for each of 3 channels");
  Attributes whole = attributes;
  whole["dtype"] = std::string("i32");
  CHECK(complaint({2, 4}, whole) ==
        "crop_mirror_normalize (y3): dtype is \"i32\", wanted \"f32\", \"f16\" or \"bf16\"");
}

TEST_CASE("row 16: a sample with more features than oneDNN counts is refused with its shape") {
  const std::int64_t features = std::int64_t{3} * 65536 * 65536;
  CHECK(words_of({"fc", {{"x", {1, 3, 65536, 65536}}, {"w", {4, features}}}, {}, ""}) ==
        "fc (out): x is [1,3,65536,65536]: 12884901888 features a sample, wanted at most 2147483647");
}

TEST_CASE("conv2d names what does not fit") {
  const Attributes good = window({1, 1}, {0, 0}, {1, 1}, 1);
  CHECK(words_of({"conv2d", {{"x", {1, 3, 5, 5}}, {"w", {4, 2, 3, 3}}}, good, ""}) ==
        "conv2d (out): w is [4,2,3,3], wanted [O, 3, kh, kw] for x [1,3,5,5] in 1 groups");
  CHECK(words_of({"conv2d", {{"x", {1, 3, 2, 5}}, {"w", {4, 3, 3, 3}}}, good, ""}) ==
        "conv2d (out): a window of 3 does not fit into 2 padded rows of x [1,3,2,5]");
  CHECK(words_of(
            {"conv2d", {{"x", {1, 3, 5, 5}}, {"w", {4, 3, 3, 3}}}, window({1, 1}, {0, 0}, {1, 3}, 1), ""}) ==
        "conv2d (out): a window of 7 does not fit into 5 padded columns of x [1,3,5,5]");
  CHECK(words_of(
            {"conv2d", {{"x", {1, 3, 5, 5}}, {"w", {4, 3, 3, 3}}}, window({0, 1}, {0, 0}, {1, 1}, 1), ""}) ==
        "conv2d (out): strides is [0,1], wanted two numbers of 1 or more");
  CHECK(
      words_of(
          {"conv2d", {{"x", {1, 3, 5, 5}}, {"w", {4, 3, 3, 3}}}, window({1, 1}, {0, 0, 1}, {1, 1}, 1), ""}) ==
      "conv2d (out): paddings is [0,0,1], wanted two or four numbers of 0 or more");
  CHECK(words_of(
            {"conv2d", {{"x", {1, 3, 5, 5}}, {"w", {4, 1, 3, 3}}}, window({1, 1}, {0, 0}, {1, 1}, 2), ""}) ==
        "conv2d (out): x is [1,3,5,5], 2 groups do not divide its channels");
  CHECK(words_of({"conv2d", {{"x", {3, 5, 5}}, {"w", {4, 3, 3, 3}}}, good, ""}) ==
        "conv2d (out): x is [3,5,5], wanted [N, C, H, W]");
}

TEST_CASE("pool2d names what does not fit") {
  const std::map<std::string, Shape> image = {{"x", {1, 3, 4, 4}}};
  CHECK(words_of({"pool2d", image, pooling("median", {2, 2}, {0, 0}), ""}) ==
        "pool2d (out): kind is \"median\", wanted \"max\" or \"average\"");
  CHECK(words_of({"pool2d", image, pooling("max", {2, 2}, {2, 0}), ""}) ==
        "pool2d (out): paddings [2,0] must be smaller than kernel [2,2]");
  CHECK(words_of({"pool2d", image, pooling("max", {5, 2}, {0, 0}), ""}) ==
        "pool2d (out): a window of 5 does not fit into 4 padded rows of x [1,3,4,4]");
}

TEST_CASE("batch_norm names what does not fit") {
  const auto settings = [](double epsilon, double momentum, bool training) {
    return Attributes{{"epsilon", epsilon}, {"momentum", momentum}, {"training", training}};
  };
  const auto inputs = [](const Shape& x, const Shape& variance) {
    return std::map<std::string, Shape>{
        {"x", x}, {"scale", {3}}, {"bias", {3}}, {"mean", {3}}, {"variance", variance}};
  };
  const Attributes good = settings(1e-5, 0.9, true);
  CHECK(words_of({"batch_norm", inputs({2, 3, 4, 4}, {4}), good, ""}) ==
        "batch_norm (out.y): variance is f32 [4], wanted f32 [3] for x [2,3,4,4]");
  CHECK(words_of({"batch_norm", inputs({2, 3}, {3}), good, ""}) ==
        "batch_norm (out.y): x is [2,3], wanted [N, C, H, W]");
  CHECK(words_of({"batch_norm", inputs({2, 3, 4, 4}, {3}), settings(0.0, 0.9, true), ""}) ==
        "batch_norm (out.y): epsilon is 0, must be above 0");
  CHECK(words_of({"batch_norm", inputs({2, 3, 4, 4}, {3}), settings(1e-5, 1.5, true), ""}) ==
        "batch_norm (out.y): momentum is 1.5, must be from 0 to 1");
  CHECK(words_of({"batch_norm", inputs({2, 3, 4, 4}, {3}), settings(1e-5, 0.9, false), ""}) ==
        "batch_norm (out.y): mean is not an output of evaluation");
  CHECK(words_of({"batch_norm_act", inputs({2, 3, 4, 4}, {3}), settings(1e-5, 0.9, false), ""}) ==
        "batch_norm_act (out.y): is for training only; evaluation has batch_norm");
  auto residual = inputs({2, 3, 4, 4}, {3});
  residual["z"] = {2, 3, 4, 5};
  CHECK(words_of({"batch_norm_add_act", residual, good, ""}) ==
        "batch_norm_add_act (out.y): z is [2,3,4,5], wanted [2,3,4,4] like x");
}

TEST_CASE("labels must be whole numbers, one a sample") {
  CHECK(words_of({"accuracy", {{"x", {2, 3}}, {"label", {2}}}, {}, ""}) ==
        "accuracy (out): label is f32 [2], wanted i32 [2] for x [2,3]");
  CHECK(words_of({"softmax_with_cross_entropy", {{"logits", {2, 3}}, {"label", {3}}}, {}, "label"}) ==
        "softmax_with_cross_entropy (out.softmax): label is i32 [3], wanted i32 [2] for logits [2,3]");
}

TEST_CASE("optimizers name what does not fit the parameter") {
  const Attributes settings = {{"mu", 1.0}, {"use_nesterov", false}, {"weight_decay", 0.0}};
  const std::map<std::string, Shape> good = {
      {"param", {2}}, {"grad", {2}}, {"velocity", {2}}, {"learning_rate", {1}}};
  CHECK(words_of({"momentum", good, settings, ""}) ==
        "momentum (param): mu is 1, must be at least 0 and below 1");
  CHECK(words_of(
            {"sgd", {{"param", {2}}, {"grad", {3}}, {"learning_rate", {1}}}, {{"weight_decay", 0.0}}, ""}) ==
        "sgd (param): grad is [3] f32, wanted that of param: [2] f32");
  CHECK(words_of(
            {"sgd", {{"param", {2}}, {"grad", {2}}, {"learning_rate", {1}}}, {{"weight_decay", -0.5}}, ""}) ==
        "sgd (param): weight_decay is -0.5, must be 0 or more");
}

TEST_CASE("adam names what does not fit") {
  const auto settings = [](double beta1, double beta2, double epsilon) {
    return Attributes{{"beta1", beta1}, {"beta2", beta2}, {"epsilon", epsilon}, {"weight_decay", 0.0}};
  };
  std::map<std::string, Shape> inputs = {{"param", {2}},        {"grad", {2}},      {"moment1", {2}},
                                         {"moment2", {2}},      {"beta1_pow", {1}}, {"beta2_pow", {1}},
                                         {"learning_rate", {1}}};
  CHECK(words_of({"adam", inputs, settings(1.0, 0.999, 1e-8), ""}) ==
        "adam (param): beta1 is 1, must be at least 0 and below 1");
  CHECK(words_of({"adam", inputs, settings(0.9, 0.999, 0.0), ""}) ==
        "adam (param): epsilon is 0, must be above 0");
  inputs["beta2_pow"] = {2};
  CHECK(words_of({"adam", inputs, settings(0.9, 0.999, 1e-8), ""}) ==
        "adam (param): beta2_pow is [2], wanted [1]");
  inputs["moment2"] = {3};
  CHECK(words_of({"adam", inputs, settings(0.9, 0.999, 1e-8), ""}) ==
        "adam (param): moment2 is [3] f32, wanted that of param: [2] f32");
}

TEST_CASE("the other ops name what does not fit") {
  CHECK(words_of({"elementwise_add", {{"x", {2, 3}}, {"y", {3, 2}}}, {}, ""}) ==
        "elementwise_add (out): x is [2,3], y is [3,2]; they must be alike");
  CHECK(words_of({"concat", {{"x", {2, 3}}, {"y", {3, 3}}}, {{"axis", std::int64_t{1}}}, ""}) ==
        "concat (out): x is f32 [2,3], y is f32 [3,3]; they must be alike but for axis 1");
  CHECK(words_of({"concat", {{"x", {2, 3}}, {"y", {2, 3}}}, {{"axis", std::int64_t{2}}}, ""}) ==
        "concat (out): axis is 2, wanted one of x [2,3], counted from 0");
  CHECK(words_of({"cast", {{"x", {2}}}, {{"dtype", std::string("f64")}}, ""}) ==
        "cast (out): dtype is \"f64\", wanted \"f32\", \"f16\" or \"bf16\"");
  CHECK(words_of({"cast", {{"x", {2}}}, {{"dtype", std::string("f32")}}, "x"}) ==
        "cast (out): x is i32, wanted f32, f16 or bf16");
  CHECK(words_of({"relu6", {{"x", {2}}}, {{"threshold", 0.0}}, ""}) ==
        "relu6 (out): threshold is 0, must be above 0");
  CHECK(words_of({"dropout", {{"x", {2}}}, {{"p", 1.0}, {"key", std::int64_t{1}}}, ""}) ==
        "dropout (out): p is 1, must be at least 0 and below 1");
  CHECK(words_of({"all_reduce", {{"x", {2}}}, {{"op", std::string("max")}}, ""}) ==
        "all_reduce (x): op is \"max\", wanted \"sum\"");
  CHECK(words_of({"reduce", {{"x", {2}}}, {{"op", std::string("max")}, {"root", std::int64_t{0}}}, ""}) ==
        "reduce (x): op is \"max\", wanted \"sum\"");
  CHECK(words_of({"reduce", {{"x", {2}}}, {{"op", std::string("sum")}, {"root", std::int64_t{-1}}}, ""}) ==
        "reduce (x): root is -1, wanted a rank");
  CHECK(words_of({"broadcast", {{"x", {2}}}, {{"roots", Shape{-1}}}, ""}) ==
        "broadcast (x): a root is -1, wanted a rank");
  CHECK(words_of({"gather_parameter", {{"x", {2}}}, {{"shape", Shape{3}}}, ""}) ==
        "gather_parameter (out): x is [2], wanted [3]");
  CHECK(words_of({"fill", {}, {{"value", 1.0}, {"shape", Shape{2, 0}}}, ""}) ==
        "fill (out): shape is [2,0], every size must be 1 or more");
}

TEST_CASE("LARS names what does not fit") {
  const std::map<std::string, Shape> inputs = {
      {"param", {2}}, {"grad", {2}}, {"velocity", {2}}, {"learning_rate", {1}}};
  const auto settings = [](double mu, double coeff, double epsilon) {
    return Attributes{{"mu", mu}, {"lars_coeff", coeff}, {"epsilon", epsilon}, {"weight_decay", 0.0}};
  };
  CHECK(words_of({"lars", inputs, settings(1, 1, 0), ""}) ==
        "lars (param): mu is 1, must be at least 0 and below 1");
  CHECK(words_of({"lars", inputs, settings(0.9, 0, 0), ""}) ==
        "lars (param): lars_coeff is 0, must be above 0");
  CHECK(words_of({"lars", inputs, settings(0.9, 1, -1), ""}) ==
        "lars (param): epsilon is -1, must be 0 or more");
}

TEST_CASE("clipping, averages and merging name what does not fit") {
  CHECK(words_of({"clip_by_norm", {{"grad", {2}}}, {{"limit", 0.0}}, ""}) ==
        "clip_by_norm (grad): limit is 0, must be above 0");
  CHECK(words_of({"gradient_norms", {{"grad", {2}}, {"norms", {3}}}, {{"first", std::int64_t{3}}}, ""}) ==
        "gradient_norms (norms): norms is [3], wanted [n] with n of at least 4");
  CHECK(words_of({"average_weights",
                  {{"param", {2}}, {"average", {2}}, {"decay_pow", {1}}},
                  {{"decay", 1.0}},
                  ""}) == "average_weights (average): decay is 1, must be at least 0 and below 1");
  CHECK(words_of({"merge_gradient",
                  {{"grad", {2}}, {"merged", {3}}},
                  {{"k_steps", std::int64_t{2}}, {"scale", 0.5}},
                  ""}) == "merge_gradient (out.out): merged is f32 [3], wanted f32 [2]");
  CHECK(words_of({"cast_gradient", {{"grad", {2}}, {"param", {2}}}, {{"dtype", std::string("f32")}}, ""}) ==
        "cast_gradient (out): dtype is \"f32\", wanted \"f16\" or \"bf16\"");
}

TEST_CASE("averages over ranks and sparse gradients name what does not fit") {
  CHECK(words_of({"average_parameters",
                  {{"param", {2}}, {"snapshot", {2}}},
                  {{"begin_step", std::int64_t{1}}, {"k_steps", std::int64_t{0}}},
                  ""}) == "average_parameters (param): k_steps is 0, must be 1 or more");
  const Attributes shared = {{"ranks", std::int64_t{2}},
                             {"rampup_begin_step", std::int64_t{0}},
                             {"rampup_step", std::int64_t{1}},
                             {"kept", std::vector<std::int64_t>{3}}};
  CHECK(words_of({"dgc_exchange", {{"grad", {2}}, {"message", {6}}}, shared, ""}) ==
        "dgc_exchange (grad): kept has 3, wanted 1 to 2 elements");
}

}  // namespace
}  // namespace fleetrun::runtime::bad_arguments_test
