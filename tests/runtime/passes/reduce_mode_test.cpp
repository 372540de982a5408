// The passes of reduce_strategy Reduce.
#include <doctest/doctest.h>

#include "runtime/passes/keep_own_updates.h"
#include "runtime/passes/passes.h"
#include "support/built_model.h"
#include "support/pass_text.h"

namespace fleetrun::runtime::reduce_mode_test {
namespace {

const std::string kValues =
    "feed rate f32[1]\n"
    "parameter a f32[2] constant 0.0\n"
    "gradient a@GRAD f32[2] of a\n"
    "parameter b f32[3] constant 0.0\n"
    "gradient b@GRAD f32[3] of b\n"
    "parameter c f32[1] constant 0.0\n"
    "gradient c@GRAD f32[1] of c\n";

std::string fill(const std::string& name, int size) {
  return "fill -> y=" + name + "@GRAD {shape=[" + std::to_string(size) + "]; value=1.0} backward\n";
}

std::string sgd(const std::string& name, const std::string& owner) {
  return "sgd param=" + name + " grad=" + name + "@GRAD learning_rate=rate -> param=" + name + " {" + owner +
         "weight_decay=0.0} optimize\n";
}

std::string reduce(const std::string& name, int root) {
  return "reduce x=" + name + "@GRAD -> x=" + name + "@GRAD {op=\"sum\"; root=" + std::to_string(root) +
         "} communication\n";
}

std::string broadcast(const std::string& names, const std::string& roots) {
  return "broadcast x=" + names + " -> x=" + names + " {roots=[" + roots + "]} communication\n";
}

TEST_CASE(
    "each gradient goes to the rank that owns the fewest elements, which updates and sends the parameter") {
  const std::string before =
      kValues + fill("c", 1) + fill("b", 3) + fill("a", 2) + sgd("a", "") + sgd("b", "") + sgd("c", "");
  CHECK(test::run_pass(insert_reduce, before).text ==
        kValues + fill("c", 1) + reduce("c", 0) + fill("b", 3) + reduce("b", 1) + fill("a", 2) +
            reduce("a", 0) + sgd("a", "owner=0; ") + broadcast("a", "0") + sgd("b", "owner=1; ") +
            broadcast("b", "1") + sgd("c", "owner=0; ") + broadcast("c", "0"));
}

TEST_CASE("fused broadcasts are one op, with the parameters of one owner side by side") {
  CHECK(test::run_pass(fuse_broadcasts,
                       kValues + broadcast("a", "1") + broadcast("b", "0") + broadcast("c", "1"))
            .text == kValues + "contiguous b\ncontiguous a,c\n" + broadcast("b,a,c", "0,1,1"));
}

job::StrategySpec reduce_mode(bool fuse_broadcasts) {
  job::StrategySpec strategy;
  strategy.build_strategy.reduce_strategy = job::ReduceStrategy::Reduce;
  strategy.build_strategy.fuse_broadcast_ops = fuse_broadcasts;
  return strategy;
}

TEST_CASE("ResNet-50: 161 reductions and broadcasts, no all-reduce; fused 161 broadcasts are 1") {
  const test::BuiltModel apart = test::build_model(job::ModelName::resnet50, 102, 4, reduce_mode(false));
  CHECK(apart.count("reduce") == 161);
  CHECK(apart.count("broadcast") == 161);
  CHECK(apart.count("all_reduce") == 0);
  const test::BuiltModel fused = test::build_model(job::ModelName::resnet50, 102, 4, reduce_mode(true));
  CHECK(fused.count("reduce") == 161);
  CHECK(fused.count("broadcast") == 1);
  CHECK(fused.tells("Find broadcast operators: 161, fused into 1."));
}

TEST_CASE("program order and owners: what another rank's update would have made is waited for no more") {
  job::StrategySpec strategy = reduce_mode(false);
  strategy.build_strategy.enable_sequential_execution = true;
  Program own = test::build_model(job::ModelName::resnet20, 10, 2, strategy).program;
  keep_own_updates(own, 1);
  verify(own, all_ops());
  for (const Op& op : own.ops) CHECK(std::find(op.after.begin(), op.after.end(), kNone) == op.after.end());
}

TEST_CASE("a rank keeps the updates and states that it owns, about 1/ranks of them") {
  const test::BuiltModel built = test::build_model(job::ModelName::resnet50, 102, 4, reduce_mode(true));
  const auto velocities = [](const Program& program) {
    std::int64_t elements = 0;
    for (const ValueId id : program.of_kind(ValueKind::state))
      if (program.value(id).of != kNone) elements += count_of(program.value(id).shape);
    return static_cast<double>(elements);
  };
  int updates = 0;
  for (int rank = 0; rank < 4; ++rank) {
    Program own = built.program;
    keep_own_updates(own, rank);
    verify(own, all_ops());
    updates += static_cast<int>(std::count_if(own.ops.begin(), own.ops.end(),
                                              [](const Op& op) { return op.role == Role::optimize; }));
    CHECK(velocities(own) / velocities(built.program) == doctest::Approx(0.25).epsilon(0.1));
  }
  CHECK(updates == 161);
}

}  // namespace
}  // namespace fleetrun::runtime::reduce_mode_test
