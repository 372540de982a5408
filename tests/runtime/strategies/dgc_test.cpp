// dgc against a simulation of all ranks in double precision, the bytes that it saves, and its checkpoints.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "support/rank_simulation.h"
#include "support/resumed_training.h"

namespace fleetrun::runtime::dgc_test {
namespace {

using test::Tensor;
using test::Tensors;

constexpr int kBatch = 4;  // of a rank
constexpr int kSteps = 20;
constexpr double kRate = 0.02;
constexpr double kClose = 1e-5;  // of the norm
constexpr std::size_t kLarge = 16384;

job::JobSpec job_of(job::ModelName model) {
  job::JobSpec job;
  job.model.name = model;
  job.model.hidden = {128, 32};
  job.data.batch_size = kBatch;
  job.optimizer.weight_decay = 0.01;
  job.strategy.cudnn_exhaustive_search = false;  // the algorithm that rounds alike in every program
  job.strategy.dgc = true;
  job.strategy.dgc_configs = {.rampup_begin_step = 4, .rampup_step = 9, .sparsity = {0.75, 0.9, 0.99}};
  return job;
}

// All ranks in one place, in double precision.
class Simulation {
 public:
  Simulation(const job::JobSpec& job, int ranks, Tensors start)
      : job_(job), ranks_(static_cast<std::size_t>(ranks)), states_(ranks_), weights_(std::move(start)) {}

  const Tensors& weights() const { return weights_; }

  void step(const std::vector<Tensors>& gradients, double rate) {
    for (auto& [name, w] : weights_) {
      std::vector<Tensor> of_rank;
      of_rank.reserve(gradients.size());
      for (const Tensors& tensors : gradients) of_rank.push_back(tensors.at(name));
      const bool is_large = w.size() >= kLarge && ranks_ > 1;
      if (is_large && steps_ >= job_.strategy.dgc_configs.rampup_begin_step)
        sparse_update(name, w, of_rank, rate);
      else
        dense_update(name, w, of_rank, rate, is_large);
    }
    ++steps_;
  }

 private:
  struct State {
    Tensors velocity, residual;
  };

  double sparsity() const {
    const job::DgcSpec& dgc = job_.strategy.dgc_configs;
    const std::size_t entry = static_cast<std::size_t>(steps_ - dgc.rampup_begin_step) * dgc.sparsity.size() /
                              static_cast<std::size_t>(dgc.rampup_step);
    return dgc.sparsity[std::min(entry, dgc.sparsity.size() - 1)];
  }

  // Until the ramp-up begins, the ranks have the same velocity.
  void dense_update(const std::string& name, Tensor& w, const std::vector<Tensor>& gradients, double rate,
                    bool is_large) {
    Tensor mean(w.size());
    for (const Tensor& g : gradients)
      for (std::size_t i = 0; i < w.size(); ++i) mean[i] += g[i] / static_cast<double>(ranks_);
    if (!is_large) clip(mean, job_.optimizer.gradient_clip.limit);
    for (State& state : states_) state.velocity[name].resize(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double mu = job_.optimizer.momentum, g = mean[i] + job_.optimizer.weight_decay * w[i];
      const double v = mu * states_[0].velocity[name][i] + g;
      for (State& state : states_) state.velocity[name][i] = v;
      w[i] -= rate * (job_.optimizer.use_nesterov ? g + mu * v : v);
    }
  }

  void sparse_update(const std::string& name, Tensor& w, std::vector<Tensor>& gradients, double rate) {
    const auto count = static_cast<double>(ranks_);
    Tensor sum(w.size());
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      Tensor& g = gradients[rank];
      for (double& x : g) x /= count;
      clip(g, job_.optimizer.gradient_clip.limit / std::sqrt(count));
      for (double& x : g) x *= count;
      accumulate(name, w, g, states_[rank]);
      send(name, states_[rank], sum);
    }
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * sum[i] / count;
  }

  void accumulate(const std::string& name, const Tensor& w, const Tensor& gradient, State& state) const {
    Tensor &velocity = state.velocity[name], &residual = state.residual[name];
    velocity.resize(w.size());
    residual.resize(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double g = gradient[i] + job_.optimizer.weight_decay * w[i];
      velocity[i] = job_.optimizer.use_nesterov ? job_.optimizer.momentum * (velocity[i] + g)
                                                : job_.optimizer.momentum * velocity[i] + g;
      residual[i] += velocity[i] + (job_.optimizer.use_nesterov ? g : 0);
    }
  }

  void send(const std::string& name, State& state, Tensor& sum) const {
    Tensor& residual = state.residual[name];
    std::vector<std::size_t> order(residual.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(residual[a]) > std::abs(residual[b]);
    });
    order.resize(static_cast<std::size_t>(static_cast<double>(residual.size()) * (1 - sparsity()) + 1e-6));
    for (const std::size_t i : order) {
      sum[i] += residual[i];
      residual[i] = state.velocity[name][i] = 0;
    }
  }

  void clip(Tensor& gradient, double limit) const {
    const double norm = test::norm_of(gradient);
    if (job_.optimizer.gradient_clip.by == job::ClipBy::none || norm <= limit) return;
    for (double& x : gradient) x *= limit / norm;
  }

  const job::JobSpec& job_;
  std::size_t ranks_;
  std::vector<State> states_;
  Tensors weights_;
  int steps_ = 0;
};

// The gradients of the simulation come from the weights of the ranks, as in local_training_test.
void check_against_simulation(const job::JobSpec& job, int ranks) {
  CAPTURE(ranks);
  const test::WeightsByStep seen = test::watch_training(job, ranks, kSteps, [](int) { return kRate; });
  test::SoloGradients gradients(job);
  Simulation simulation(job, ranks, test::widened(seen[0][0]));
  for (int step = 0; step < kSteps; ++step) {
    const test::StepSamples samples(step, kBatch * ranks);
    std::vector<Tensors> of_rank;
    of_rank.reserve(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank)
      of_rank.push_back(gradients.at(seen[static_cast<std::size_t>(step)][static_cast<std::size_t>(rank)],
                                     samples.part(kBatch * rank)));
    simulation.step(of_rank, kRate);
  }
  CHECK(seen[kSteps].front() == seen[kSteps].back());
  CHECK(test::distance(simulation.weights(), test::widened(seen[kSteps].front())) < kClose);
}

TEST_CASE("dgc sends what is farthest from 0 and keeps the rest, after steps that sum whole gradients") {
  std::vector<job::ModelName> models = test::simulated_models();
  models.push_back(job::ModelName::mlp);
  for (const job::ModelName model : models)
    for (const int ranks : test::simulated_ranks()) check_against_simulation(job_of(model), ranks);
}

TEST_CASE("with dgc each rank clips its own large gradients, in Nesterov's form too") {
  job::JobSpec job = job_of(job::ModelName::mlp);
  job.optimizer.use_nesterov = true;
  job.optimizer.gradient_clip = {job::ClipBy::norm, 0.3};
  for (const int ranks : {2, 4}) check_against_simulation(job, ranks);
}

TEST_CASE("dgc goes on from the first step when there is no ramp-up") {
  job::JobSpec job = job_of(job::ModelName::mlp);
  job.strategy.dgc_configs = {.rampup_begin_step = 0, .rampup_step = 1, .sparsity = {0.95}};
  check_against_simulation(job, 2);
}

struct Sent {
  std::uint64_t all = 0, whole = 0;  // in a step; of gradients that are summed whole
};

Sent sent_in_a_step(bool dgc, int ranks) {
  constexpr ModelFacts kFacts = {.input_shape = {3, 32, 32}, .classes = 1000};
  job::JobSpec job;
  job.model.name = job::ModelName::resnet50;
  job.data.batch_size = 2;
  job.strategy.dgc = dgc;
  job.strategy.cudnn_exhaustive_search = false;
  const std::vector<float> images(std::size_t{2} * 3 * 32 * 32, 0.5F);
  const std::vector<std::int32_t> labels(2, 7);
  Sent sent;
  auto world = comm::make_thread_world(ranks);
  testing::run_ranks(ranks, [&](int rank) {
    const auto device = make_cpu_device();
    Trainer trainer(job, kFacts, *device, *world[static_cast<std::size_t>(rank)]);
    trainer.share_parameters();
    trainer.step({images.data(), labels.data()}, 1e-3);
    if (rank != 0) return;
    sent.all = trainer.sent_bytes();
    const Program& program = trainer.executor().program();
    for (const ValueId id : program.of_kind(ValueKind::gradient))
      sent.whole += program.value(id).bytes() * 2 * static_cast<std::uint64_t>(ranks - 1) /
                    static_cast<std::uint64_t>(ranks);
  });
  return sent;
}

TEST_CASE(
    "at a sparsity of 99.9 % the ranks of a ResNet-50 send less than a hundredth of the bytes, also with its small gradients") {
  for (const int ranks : test::simulated_ranks()) {
    if (ranks == 1) continue;  // sends nothing
    const Sent dense = sent_in_a_step(false, ranks), sparse = sent_in_a_step(true, ranks);
    CAPTURE(ranks);
    CAPTURE(dense.all);
    CAPTURE(sparse.all);
    CAPTURE(sparse.whole);
    CHECK(dense.all >
          100'000'000 * static_cast<std::uint64_t>(ranks - 1) * 2 / static_cast<std::uint64_t>(ranks));
    CHECK((sparse.all - sparse.whole) * 100 <= dense.all - sparse.whole);
    CHECK(sparse.all * 100 <= dense.all);
  }
}

TEST_CASE(
    "a checkpoint of dgc has what each rank has not sent; another number of ranks goes on with the mean") {
  const job::JobSpec job = job_of(job::ModelName::mlp);
  Snapshot saved;
  std::vector<std::vector<float>> residuals(2);
  const std::string name = "f1.weight.residual";
  test::run_trainers(job, 2, [&](test::TrainedRank& rank) {
    rank.trainer.share_parameters();
    test::train_steps(rank, kBatch, 0, 8, kRate);
    residuals[static_cast<std::size_t>(rank.communicator.rank())] = rank.trainer.storage().read(name);
    Snapshot own = test::snapshot_after(rank, 8);
    if (rank.communicator.rank() == 0) saved = std::move(own);
  });
  REQUIRE(saved.files.count(kRankStatesFile) == 1);
  for (const int rank : {0, 1})
    CHECK(saved.files.at(kRankStatesFile).at(name + "." + std::to_string(rank)).values ==
          residuals[static_cast<std::size_t>(rank)]);
  CHECK(saved.files.at(kOptimizerFile).count(name) == 0);
  test::run_trainers(job, 3, [&](test::TrainedRank& rank) {
    test::resume_from(saved, rank);
    const std::vector<float> mean = rank.trainer.storage().read(name);
    bool is_mean = true;
    for (std::size_t i = 0; i < mean.size(); ++i)
      is_mean = is_mean && std::abs(mean[i] - (residuals[0][i] + residuals[1][i]) / 2) < 1e-6F;
    CHECK(is_mean);
  });
  job::JobSpec plain = job;
  plain.strategy.dgc = false;
  job::JobSpec local = plain;
  local.strategy.localsgd = true;
  for (const job::JobSpec& other : {plain, local})
    test::run_trainers(other, 2, [&](test::TrainedRank& rank) {
      const std::string note = test::resume_from(saved, rank);
      const bool tells = rank.communicator.rank() == 0;
      CHECK(note == (tells ? "the ranks go on with the mean of what each had saved for itself" : ""));
      test::train_steps(rank, kBatch, 8, 9, kRate);
    });
}

TEST_CASE("ranks that go back to a step before the ramp-up go on with equal velocities") {
  job::JobSpec job = job_of(job::ModelName::mlp);
  Snapshot saved;
  test::run_trainers(job, 2, [&](test::TrainedRank& rank) {
    rank.trainer.share_parameters();
    test::train_steps(rank, kBatch, 0, 8, kRate);
    Snapshot own = test::snapshot_after(rank, 8);
    if (rank.communicator.rank() == 0) saved = std::move(own);
  });
  job.strategy.dgc_configs.rampup_begin_step = 100;
  std::vector<test::Weights> weights(2);
  test::run_trainers(job, 2, [&](test::TrainedRank& rank) {
    test::resume_from(saved, rank);
    test::train_steps(rank, kBatch, 8, 12, kRate);
    weights[static_cast<std::size_t>(rank.communicator.rank())] = test::weights_of(rank.trainer);
  });
  CHECK(weights[0] == weights[1]);
}

}  // namespace
}  // namespace fleetrun::runtime::dgc_test
