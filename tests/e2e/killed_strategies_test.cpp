// Trainings that are killed at random moments, with each strategy: they end bit by bit as one that was not. `scripts/soak kills` repeats this
// more often.
#include <csignal>
#include <iterator>
#include <memory>
#include <random>

#include "e2e/saved_training.h"
#include "support/soak.h"

namespace fleetrun::killed_strategies_test {
namespace {

using saved_training::newest, saved_training::train, saved_training::Training;
using std::chrono::milliseconds, std::chrono::steady_clock;

struct Strategy {
  const char* name;
  Words settings;
  const char* model = "lenet";
  int ranks = 2;
};

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> all = {
      {"gradient_merge, fp16_allreduce",
       {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=4",
        "strategy.fp16_allreduce=true"}},
      {"lars", {"strategy.lars=true"}},
      {"lamb", {"optimizer.name=adam", "strategy.lamb=true"}},
      {"adamw, averages",
       {"optimizer.name=adamw", "optimizer.weight_decay=0.01", "optimizer.ema_decay=0.9",
        "optimizer.ema_evaluate=true"}},
      {"localsgd", {"strategy.localsgd=true", "strategy.localsgd_configs.k_steps=5"}},
      {"adaptive_localsgd",
       {"strategy.adaptive_localsgd=true", "strategy.adaptive_localsgd_configs.init_k_steps=3"}},
      {"dgc",
       {"strategy.dgc=true",
        R"(strategy.dgc_configs={"rampup_begin_step": 5, "rampup_step": 40, "sparsity": [0.9, 0.99]})"},
       "mlp"},
      {"sharding in stage 1", {"strategy.sharding=true"}},
      {"sharding in stage 2, clipping",
       {"strategy.sharding=true", "strategy.sharding_configs.stage=2",
        "optimizer.gradient_clip.by=global_norm", "optimizer.gradient_clip.limit=0.1"}},
      {"sharding in stage 3", {"strategy.sharding=true", "strategy.sharding_configs.stage=3"}},
      {"sharding in two sets",
       {"strategy.sharding=true", "strategy.sharding_configs.sharding_degree=2"},
       "lenet",
       4},
      {"pipeline", {"strategy.pipeline=true", "strategy.pipeline_configs.accumulate_steps=4"}},
      {"recompute, Reduce", {"strategy.recompute=true", "strategy.build_strategy.reduce_strategy=Reduce"}},
      {"sync_batch_norm", {"strategy.sync_batch_norm=true", "data.batch_size=4"}, "resnet20"},
  };
  return all;
}

// Starts a training, kills it or one of its ranks again and again, and starts it again until it has ended.
class Killer {
 public:
  Killer(const Training& training, const Strategy& strategy, milliseconds longest)
      : training_(training), strategy_(strategy), longest_(longest) {}

  // Returns how the last start ended.
  ChildResult run(int kills, std::minstd_rand& random) {
    start();
    for (int kill = 0; kill < kills && is_alive(child_->pid()); ++kill) {
      const auto moment =
          steady_clock::now() + milliseconds(random() % static_cast<unsigned>(longest_.count()));
      comes_true([&] { return steady_clock::now() >= moment || !is_alive(child_->pid()); }, longest_);
      if (random() % 2 == 0)
        kill_a_rank(random);
      else
        kill_all();
    }
    return child_->wait();
  }
  int kills() const { return kills_; }  // that met a process which still ran

 private:
  void start() {
    Words command = {FLEETRUN_BINARY, "--nproc_per_node=" + std::to_string(strategy_.ranks),
                     "--max_restart=1000", "job.json"};
    command.insert(command.end(), strategy_.settings.begin(), strategy_.settings.end());
    child_ = std::make_unique<ChildProcess>(command, training_.options());
  }
  // fleetrun starts all ranks again.
  void kill_a_rank(std::minstd_rand& random) {
    const std::vector<pid_t> ranks = workers_in(training_.folder);
    if (!ranks.empty() && ::kill(ranks[random() % ranks.size()], SIGKILL) == 0) ++kills_;
  }
  void kill_all() {
    child_->send(SIGKILL);
    if (child_->wait().code != 0) ++kills_;
    REQUIRE(comes_true([&] { return workers_in(training_.folder).empty(); }, std::chrono::seconds(10)));
    start();
  }

  const Training& training_;
  const Strategy& strategy_;
  milliseconds longest_;
  std::unique_ptr<ChildProcess> child_;
  int kills_ = 0;
};

TEST_CASE(
    "killed at random moments and started again, a training with any strategy ends bit by bit as one that was not") {
  const int kills = testing::soak_count(3);
  std::minstd_rand random(11);
  int met = 0;
  for (Strategy strategy : strategies()) {
    CAPTURE(std::string(strategy.name));
    strategy.settings.insert(strategy.settings.end(), {"train.epochs=10", "checkpoint.every_steps=1"});
    const Training whole(strategy.model), killed(strategy.model);
    const auto begin = steady_clock::now();
    const ChildResult expected = train(whole, strategy.settings, strategy.ranks);
    REQUIRE_MESSAGE(expected.code == 0, expected.err);
    const auto took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin);
    Killer killer(killed, strategy, took);
    const ChildResult found = killer.run(kills, random);
    met += killer.kills();
    REQUIRE_MESSAGE(found.code == 0, found.err);
    CHECK(newest(killed) == newest(whole));
    CHECK(killed.folder.read("output/model.safetensors") == whole.folder.read("output/model.safetensors"));
  }
  CHECK(met > std::ssize(strategies()));
}

}  // namespace
}  // namespace fleetrun::killed_strategies_test
