// Batch normalisation over all ranks is exact: a batch split over ranks, however unevenly, is normalised as the whole
// batch on one rank would be, and trains the same network.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "base/error/error.h"
#include "runtime/compile/build_program.h"
#include "runtime/graph/backward.h"
#include "runtime/passes/passes.h"
#include "runtime/tensor/philox.h"
#include "runtime/training/trainer/trainer.h"
#include "support/run_program.h"
#include "support/run_world.h"
#include "support/small_net.h"

namespace fleetrun::runtime::sync_batch_norm_test {
namespace {

using test::Floats;

Floats random_floats(std::size_t count, std::uint64_t stream, float from, float to) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = from + (to - from) * unit_float(philox(3, stream, i)[0]);
  return values;
}

double norm(const Floats& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

double relative_difference(const Floats& a, const Floats& b) {
  REQUIRE(a.size() == b.size());
  Floats difference(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  return norm(difference) / norm(a);
}

Floats added(Floats a, const Floats& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// ---- one layer

constexpr std::int64_t kChannels = 5, kSide = 3;
constexpr std::size_t kImage = kChannels * kSide * kSide;

// batch_norm and its gradient; dy is fed.
Program one_layer(std::int64_t images) {
  Program program;
  Builder builder(program, all_ops());
  const Shape shape = {images, kChannels, kSide, kSide};
  const ValueId y = test::normalise(builder, "bn", builder.feed("x", shape));
  builder.add({.type = "batch_norm_grad",
               .inputs = {{"x", program.find("x")},
                          {"dy", builder.feed("dy", shape)},
                          {"scale", program.find("bn.scale")},
                          {"batch_mean", program.find("bn.batch_mean")},
                          {"batch_variance", program.find("bn.batch_variance")}},
               .attributes = {{"epsilon", 1e-5}},
               .role = Role::backward,
               .name = "grad"});
  program.value(y).name = "y";
  return program;
}

using Results = std::map<std::string, Floats>;

// Of `images` from the `first` on, of a batch whose mean is far from the running one, and small beside its distance.
Results run_layer(std::int64_t first, std::int64_t images, comm::Communicator* communicator) {
  Program program = one_layer(images);
  const job::StrategySpec strategy;
  if (communicator != nullptr) sync_batch_norm(program, {.ops = all_ops(), .strategy = strategy});
  const auto device = make_cpu_device();
  test::ProgramRun run(program, all_ops(), *device);
  run.context().communicator = communicator;
  const auto set = [&](const std::string& name, const Floats& values) {
    run.set(program.find(name), values);
  };
  const auto part = [&](const Floats& whole) {
    const auto begin = whole.begin() + first * static_cast<std::int64_t>(kImage);
    return Floats(begin, begin + images * static_cast<std::int64_t>(kImage));
  };
  set("x", part(random_floats(8 * kImage, 1, 3.0F, 5.0F)));
  set("dy", part(random_floats(8 * kImage, 2, -1.0F, 1.5F)));
  set("bn.scale", random_floats(kChannels, 4, 0.5F, 1.5F));
  set("bn.bias", random_floats(kChannels, 5, -1.0F, 1.0F));
  set("bn.mean", Floats(kChannels, 1.0F));
  set("bn.variance", Floats(kChannels, 1.0F));
  run.run();
  Results results;
  for (const char* name : {"y", "grad.dx", "grad.dscale", "grad.dbias", "bn.mean", "bn.variance"})
    results[name] = run.get(program.find(name));
  return results;
}

TEST_CASE("sync_batch_norm of 3 and of 5 images is batch_norm of all 8") {
  Results whole = run_layer(0, 8, nullptr);
  std::vector<Results> parts(2);
  testing::run_world(2, [&](comm::Communicator& communicator) {
    const bool is_first = communicator.rank() == 0;
    parts[is_first ? 0 : 1] = run_layer(is_first ? 0 : 3, is_first ? 3 : 5, &communicator);
  });
  for (const std::string name : {"y", "grad.dx"}) {
    CAPTURE(name);
    Floats both = parts[0][name];
    both.insert(both.end(), parts[1][name].begin(), parts[1][name].end());
    CHECK(relative_difference(whole[name], both) < 1e-5);
  }
  for (const std::string name : {"grad.dscale", "grad.dbias"}) {
    CAPTURE(name);
    CHECK(relative_difference(whole[name], added(parts[0][name], parts[1][name])) < 1e-5);
  }
  for (const std::string name : {"bn.mean", "bn.variance"}) {
    CAPTURE(name);
    CHECK(relative_difference(whole[name], parts[0][name]) < 1e-5);
    CHECK(parts[0][name] == parts[1][name]);
  }
}

// ---- a training

constexpr std::int64_t kGlobalBatch = 16;
constexpr int kSteps = 6;
constexpr std::size_t kPixels = 3 * 8 * 8;

struct GlobalBatch {
  Floats images;
  std::vector<std::int32_t> labels;
};

GlobalBatch make_batch(std::uint64_t step) {
  GlobalBatch batch = {random_floats(kGlobalBatch * kPixels, 10 + step, 0.0F, 1.0F), {}};
  for (std::size_t i = 0; i < kGlobalBatch; ++i)
    batch.labels.push_back(static_cast<std::int32_t>(philox(2, step, i)[0] % 10));
  return batch;
}

// Convolutions and batch norms without a kink between them: a relu whose input rounds to the other side of 0
// would change everything after it.
Program smooth_net(std::int64_t images) {
  Program program;
  Builder builder(program, all_ops());
  ValueId x = builder.feed("image", {images, 3, 8, 8});
  const ValueId label = builder.feed("label", {images}, DType::i32);
  for (const int layer : {1, 2, 3}) {
    const std::string number = std::to_string(layer);
    x = test::normalise(builder, "bn" + number, test::convolve(builder, "conv" + number, x, 16 * layer, 3));
  }
  x = builder.op("pool", "pool2d", {{"x", x}}, test::pooling("average"));
  x = builder.op("fc", "fc", {{"x", x}, {"w", builder.parameter("fc.w", {10, 48 * 4 * 4}, {})}});
  const auto made = builder.add(
      {.type = "softmax_with_cross_entropy", .inputs = {{"logits", x}, {"label", label}}, .name = "ce"});
  append_backward(builder, builder.op("loss", "mean", {{"x", made[1]}}));
  test::update_parameters(builder);
  return program;
}

struct Trained {
  Results parameters, statistics;
  double loss = 0;  // of the last step, the mean over the ranks
};

void initialise(test::ProgramRun& run) {
  const Program& program = run.program();
  for (const ValueId id : program.of_kind(ValueKind::parameter)) {
    const Value& value = program.value(id);
    const auto count = static_cast<std::size_t>(count_of(value.shape));
    const auto stream = static_cast<std::uint64_t>(count) + value.name.size();
    run.set(id,
            value.name.ends_with(".scale") ? Floats(count, 1.0F) : random_floats(count, stream, -0.1F, 0.1F));
  }
  for (const ValueId id : program.of_kind(ValueKind::state))
    if (program.value(id).name.ends_with(".variance"))
      run.set(id, Floats(static_cast<std::size_t>(count_of(program.value(id).shape)), 1.0F));
}

Trained train_rank(test::ProgramRun& run, comm::Communicator& communicator, std::int64_t images) {
  const Program& program = run.program();
  initialise(run);
  run.context().communicator = &communicator;
  run.set(program.find("learning_rate"), Floats{0.05F});
  const std::int64_t first = communicator.rank() * images;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const GlobalBatch batch = make_batch(step);
    const auto part = [&](const auto& whole, std::int64_t size) {
      const auto begin = whole.begin() + first * size;
      return std::remove_cvref_t<decltype(whole)>(begin, begin + images * size);
    };
    run.set(program.find("image"), part(batch.images, kPixels));
    run.set(program.find("label"), part(batch.labels, 1));
    run.run();
  }
  Trained trained;
  for (const ValueId id : program.of_kind(ValueKind::parameter))
    trained.parameters[program.value(id).name] = run.get(id);
  for (const ValueId id : program.of_kind(ValueKind::state))
    if (program.value(id).of == kNone) trained.statistics[program.value(id).name] = run.get(id);
  float loss = run.get(program.find("loss"))[0];
  communicator.all_reduce({&loss, 1, DType::f32}, comm::ReduceOp::sum);
  trained.loss = static_cast<double>(loss) / communicator.size();
  return trained;
}

Trained train(bool sync, int ranks) {
  Trained trained;
  testing::run_world(ranks, [&](comm::Communicator& communicator) {
    const std::int64_t images = kGlobalBatch / ranks;
    Program program = smooth_net(images);
    const job::StrategySpec strategy;
    const PassContext context = {.ops = all_ops(), .strategy = strategy, .world_size = ranks};
    if (sync) sync_batch_norm(program, context);
    scale_loss_gradient(program, context);
    insert_all_reduce(program, context);
    const auto device = make_cpu_device();
    test::ProgramRun run(program, all_ops(), *device);
    const Trained of_rank = train_rank(run, communicator, images);
    if (communicator.rank() == 0) trained = of_rank;
  });
  return trained;
}

double greatest_difference(const Results& a, const Results& b) {
  double greatest = 0;
  for (const auto& [name, values] : a) greatest = std::max(greatest, relative_difference(values, b.at(name)));
  return greatest;
}

TEST_CASE("sync_batch_norm on 1, 2 and 4 ranks trains as one rank with the whole batch does") {
  const Trained whole = train(false, 1);
  REQUIRE(whole.statistics.size() == 2 * 3);
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    const Trained split = train(true, ranks);
    CHECK(split.loss == doctest::Approx(whole.loss).epsilon(1e-5));
    CHECK(greatest_difference(whole.parameters, split.parameters) < 1e-4);
    CHECK(greatest_difference(whole.statistics, split.statistics) < 1e-5);
  }
}

TEST_CASE("without sync_batch_norm ranks train otherwise than one with the whole batch") {
  const Trained whole = train(false, 1), apart = train(false, 2);
  CHECK(greatest_difference(whole.parameters, apart.parameters) > 1e-2);
  CHECK(greatest_difference(whole.statistics, apart.statistics) > 1e-3);
}

// ---- as a job has it

struct Counted {
  std::uint64_t collectives = 0;  // of a step
  std::map<std::string, Floats> parameters;
};

Counted count_step(bool sync, int ranks) {
  job::JobSpec job;
  job.model.name = job::ModelName::resnet20;
  job.data.batch_size = 4;
  job.strategy.sync_batch_norm = sync;
  job.strategy.fuse_all_reduce_ops = false;  // so that they can be counted
  Counted counted;
  testing::run_world(ranks, [&](comm::Communicator& communicator) {
    const auto device = make_cpu_device();
    Trainer trainer(job, {.input_shape = {3, 8, 8}, .classes = 10}, *device, communicator);
    trainer.share_parameters();
    const std::uint64_t before = communicator.collectives();
    const GlobalBatch batch = make_batch(static_cast<std::uint64_t>(communicator.rank()));
    trainer.step({batch.images.data(), batch.labels.data()}, 0.05);
    if (communicator.rank() != 0) return;
    counted.collectives = communicator.collectives() - before;
    for (const Value& value : trainer.executor().program().values)
      if (value.kind == ValueKind::parameter)
        counted.parameters[value.name] = trainer.storage().read(value.name);
  });
  return counted;
}

TEST_CASE("sync_batch_norm of a job: two small all-reduces more for each of ResNet-20's 21 batch norms") {
  const Counted apart = count_step(false, 2), synchronised = count_step(true, 2);
  CHECK(synchronised.collectives == apart.collectives + 2 * 21);
  CHECK(synchronised.parameters != apart.parameters);
}

TEST_CASE("sync_batch_norm of a job with one rank is what it has without") {
  const Counted plain = count_step(false, 1), alone = count_step(true, 1);
  CHECK(alone.collectives == 0);
  CHECK(alone.parameters == plain.parameters);
}

TEST_CASE("one value per channel on each rank is enough when the ranks have more together, and only then") {
  job::JobSpec job;
  job.model.name = job::ModelName::resnet20;
  job.data.batch_size = 1;
  const ModelFacts facts = {.input_shape = {3, 4, 4}, .classes = 4};  // one pixel after the last stage
  const auto build = [&](bool sync, int ranks) {
    job.strategy.sync_batch_norm = sync;
    return build_training_program(job, facts, all_ops(), {.world_size = ranks});
  };
  CHECK_NOTHROW(build(true, 2));
  for (const auto& [sync, ranks] : {std::pair(true, 1), std::pair(false, 2)})
    CHECK_THROWS_WITH_AS(
        build(sync, ranks),
        "batch_norm (layer3.0.bn1.y): x is [1,64,1,1]: training wants more than one value per channel",
        Error);
}

}  // namespace
}  // namespace fleetrun::runtime::sync_batch_norm_test
