#include "runtime/training/tuning/tune_job.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "base/error/error.h"
#include "runtime/tune/statistics.h"
#include "support/slowdown.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::tune_job_test {
namespace {

const char* const kJob =
    R"({"model": {"name": "mlp", "hidden": [16]}, "data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 8, 8], "classes": 4}, "batch_size": 8}})";

// Seconds, in which something can be tried on a busy machine: a result is kept only then.
constexpr double kBudget = testing::kSlowdown > 1 ? 6 : 2;

// One rank, with a folder of its own for kept results.
struct Alone {
  TemporaryFolder cache;
  JobWith job_with = [](const std::vector<std::string>& words) {
    return job::parse_job_text(kJob, "job.json", words);
  };
  comm::World world = comm::join_world({});
  std::unique_ptr<Device> device = make_cpu_device();
  ProgressPage page;

  Alone() { ::setenv("FLEETRUN_CACHE_DIR", cache.path().c_str(), 1); }
  ~Alone() { ::unsetenv("FLEETRUN_CACHE_DIR"); }
  TuningRank rank() { return {job_with, world, *device, page}; }
};

bool is_of_loaders(const Effect& effect) { return effect.name.ends_with("loader threads"); }

// With as much time as it takes to try more than the loaders, since only then a result is kept.
TuneOutcome tune_with_enough_time(Alone& alone, std::ostream& out) {
  for (double seconds = kBudget; seconds < 100; seconds *= 2) {
    TuneOutcome outcome = tune_job(alone.rank(), {.budget_seconds = seconds, .again = true}, out);
    if (!std::ranges::all_of(outcome.tuned.tried, is_of_loaders) || outcome.tuned.left_out.empty())
      return outcome;
  }
  throw std::runtime_error("100 s are not enough to try anything");
}

TEST_CASE("a second tuning of the same job takes the kept result and times no step") {
  Alone alone;
  std::ostringstream out;
  const TuneOutcome first = tune_with_enough_time(alone, out);
  CHECK_FALSE(first.kept);
  CHECK(first.timed_steps > 0);
  const TuneOutcome second = tune_job(alone.rank(), {.budget_seconds = kBudget}, out);
  CHECK(second.kept);
  CHECK(second.timed_steps == 0);
  CHECK(second.tuned.settings == first.tuned.settings);
  CHECK_FALSE(tune_job(alone.rank(), {.budget_seconds = kBudget, .again = true}, out).kept);
  CHECK_FALSE(tune_job(alone.rank(), {.budget_seconds = kBudget, .amp = true}, out).kept);
}

TEST_CASE("a result for which the budget was too small to try anything is not kept") {
  Alone alone;
  std::ostringstream out;
  const TuneOutcome first = tune_job(alone.rank(), {.budget_seconds = 0}, out);
  CHECK(first.tuned.tried.empty());
  CHECK_FALSE(first.tuned.left_out.empty());
  CHECK_FALSE(tune_job(alone.rank(), {.budget_seconds = kBudget}, out).kept);
  tune_with_enough_time(alone, out);
  CHECK(tune_job(alone.rank(), {.budget_seconds = kBudget}, out).kept);
}

TEST_CASE("a training with strategy.auto says what it took") {
  Alone alone;
  std::ostringstream out;
  tune_with_enough_time(alone, out);
  out.str("");
  auto_tuned_job(alone.rank(), out);
  CHECK(out.str().starts_with("auto: no step was timed, because the result of "));
}

TEST_CASE("without a place for results the tuning works and warns") {
  Alone alone;
  ::setenv("FLEETRUN_CACHE_DIR", "/proc/nowhere", 1);
  std::ostringstream out;
  CHECK(tune_with_enough_time(alone, out).timed_steps > 0);
  CHECK(out.str().find("warning: writing the kept results of tuning: ") != std::string::npos);
}

TEST_CASE("a GPU is refused by name") {
  Alone alone;
  alone.world.env.device = "cuda:0";
  std::ostringstream out;
  CHECK_THROWS_WITH_AS(
      tune_job(alone.rank(), {}, out),
      "fleetrun tune and strategy.auto time steps on the CPU only; this rank has the device cuda:0", Error);
}

TEST_CASE("each candidate has a ratio for each turn, and none if it changes nothing or cannot be") {
  Alone alone;
  StepTimer timer(alone.rank(), 0);
  const DefaultFacts facts = timer.look_at_default();
  CHECK(facts.step_seconds > 0);
  CHECK(facts.gradient_bytes > 0);
  CHECK(facts.memory_bytes > facts.gradient_bytes);
  const std::vector<Candidate> candidates = {
      {"threads", {"strategy.execution_strategy.num_threads=2"}},
      {"no batch norms here", {"strategy.build_strategy.fuse_bn_act_ops=true"}},
      {"one rank has no groups", {"strategy.use_hierarchical_allreduce=true"}},
      {"batch", {"data.batch_size=16"}}};
  const Measured found = timer.measure({}, candidates, 3);
  REQUIRE(found.ratios.size() == 4);
  CHECK(found.ratios[0].size() == 3);
  CHECK(found.ratios[1].empty());
  CHECK(found.ratios[2].empty());
  CHECK(found.ratios[3].size() == 3);
  CHECK(found.seconds > 0);
  CHECK(timer.measure_loaders({}, {4, 8}, 2).ratios[1].size() == 2);
}

TEST_CASE("times are per sample of the step, also with train.global_batch") {
  Alone alone;
  alone.job_with = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"data.train.samples=2048", "model.hidden=[128]", "train.global_batch=64"});
    return job::parse_job_text(kJob, "job.json", words);
  };
  StepTimer timer(alone.rank(), 0);
  timer.look_at_default();
  const Measured found = timer.measure({}, {{"16 times as many samples", {"train.global_batch=1024"}}}, 3);
  REQUIRE(found.ratios[0].size() == 3);
  CHECK(median(found.ratios[0]) < 3);  // a step takes about 16 times as long
}

TEST_CASE("what needs more memory than the user allows is not measured") {
  Alone alone;
  StepTimer timer(alone.rank(), 1000);  // bytes
  timer.look_at_default();
  CHECK(timer.measure({}, {{"batch", {"data.batch_size=64"}}}, 2).ratios[0].empty());
}

}  // namespace
}  // namespace fleetrun::runtime::tune_job_test
