// Ops that passes make, on the test's device beside the CPU: in both layouts, and in every type that they have kernels for.
#include <doctest/doctest.h>

#include "runtime/graph/builder.h"
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
const std::vector<Precision> kPrecisions = {
    {"", "", {}}, {"bf16", "bf16", {1e-2, 1e-3}}, {"f16", "f32", {5e-3, 1e-3}}};

// Images [images, channels, rows, columns] as they leave a convolution, in whose layout they are, then in `dtype`.
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
    for (const Precision& precision : kPrecisions) {
      CAPTURE(precision.dtype);
      CAPTURE(shape[1]);
      check_like_cpu(synced_norm(shape, precision.dtype), synced_norm(shape, precision.on_cpu),
                     precision.far);
    }
}

}  // namespace
}  // namespace fleetrun::runtime::made_by_passes_test
