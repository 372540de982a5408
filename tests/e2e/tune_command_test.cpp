// fleetrun tune, strategy.auto and fleetrun plan, with real ranks.
#include <algorithm>
#include <sstream>

#include "e2e/launcher.h"

namespace fleetrun::tune_command_test {
namespace {

const char* const kJob = R"({
"model": {"name": "mlp", "hidden": [32]},
"data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 8, 8], "classes": 4}, "batch_size": 8},
"train": {"max_steps": 4}
})";

const char* const kGlobalBatchJob = R"({
"model": {"name": "mlp", "hidden": [32]},
"data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 8, 8], "classes": 4}},
"train": {"max_steps": 4, "global_batch": 8}
})";

struct TunedLaunch : Launch {
  TunedLaunch() {
    folder.write("job.json", kJob);
    folder.write("global_batch.json", kGlobalBatchJob);
  }

  ChildResult run(Words words) const {
    ChildOptions all = options();
    all.environment["FLEETRUN_CACHE_DIR"] = folder / "cache";
    words.insert(words.begin(), FLEETRUN_BINARY);
    return run_child(words, all);
  }
};

TEST_CASE("tune finds settings for two ranks, keeps them, and a second start times no step") {
  const TunedLaunch launch;
  const Words words = {"tune", "--budget=30s", "--nproc_per_node=2", "--json", "job.json"};
  const ChildResult first = launch.run(words);
  REQUIRE_MESSAGE(first.code == 0, first.err);
  const auto found = nlohmann::json::parse(first.out);
  CHECK(found["kept"] == false);
  CHECK(found["timed_steps"] > 0);
  CHECK(found["ranks"] == 2);
  CHECK(found["tried"].size() > 0);
  CHECK(found["seconds"] > 0);
  CHECK(found["seconds"] <= first.seconds);

  const ChildResult second = launch.run(words);
  REQUIRE_MESSAGE(second.code == 0, second.err);
  const auto kept = nlohmann::json::parse(second.out);
  CHECK(kept["kept"] == true);
  CHECK(kept["timed_steps"] == 0);
  CHECK(kept["settings"] == found["settings"]);

  const ChildResult trained = launch.run({"--nproc_per_node=2", "job.json", "strategy.auto=true"});
  CHECK_MESSAGE(trained.code == 0, trained.err);
  CHECK(contains(trained.out, "auto: no step was timed, because the result of "));
}

TEST_CASE("tune prints a table, what it found about the advice, and leaves no log folder behind") {
  const TunedLaunch launch;
  const ChildResult result = launch.run({"tune", "--budget=2s", "--nproc_per_node=1", "job.json"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "1 rank: "));
  CHECK(contains(result.out, "\nresult: "));
  CHECK(contains(result.out, "  2 communicators and num_threads 3: not tried: there is one rank"));
  CHECK(contains(
      result.out,
      "  bigger batches: not tried: --memory, which says how much memory a rank may use, is missing, or the job sets data.batch_size or train.global_batch\n"));
  CHECK_FALSE(std::filesystem::exists(launch.folder / "log"));
}

// The kept result of the only job in the cache, changed so that it does not depend on the speed of this machine.
void keep_fusion_of_optimizers(const TunedLaunch& launch) {
  for (const auto& entry : std::filesystem::directory_iterator(launch.folder / "cache")) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("tuned-") || !name.ends_with(".json")) continue;
    nlohmann::json cache = nlohmann::json::parse(launch.folder.read("cache/" + name));
    nlohmann::json& kept = cache["tuned"].begin().value();
    kept["settings"] = {"strategy.build_strategy.fuse_all_optimizer_ops=true"};
    const auto effect = [](const char* setting, double ratio, double low, double high, int turns) {
      return nlohmann::json{{"name", setting}, {"settings", nlohmann::json::array()},
                            {"ratio", ratio},  {"low", low},
                            {"high", high},    {"turns", turns},
                            {"advice", 0}};
    };
    kept["explained"] = {effect("strategy.build_strategy.fuse_all_optimizer_ops=true", 1.25, 1.2, 1.3, 24)};
    launch.folder.write("cache/" + name, cache.dump());
  }
}

TEST_CASE("tune --explain prints what each setting does, and the result as a job and for PaddlePaddle") {
  const TunedLaunch launch;
  REQUIRE(launch.run({"tune", "--budget=5s", "--nproc_per_node=1", "job.json"}).code == 0);
  keep_fusion_of_optimizers(launch);
  const ChildResult result = launch.run({"tune", "--explain", "--nproc_per_node=1", "job.json"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  for (
      const char* part :
      {"1 rank: no step was timed, because the result of ",
       "\nthe result without one of its settings, divided by the result:\n",
       "\nstrategy.build_strategy.fuse_all_optimizer_ops=true  1.250  1.200 to 1.300     24  it makes the step faster\n",
       "\"fuse_all_optimizer_ops\": true",
       "\nfor PaddlePaddle (DistributedStrategy.load_from_prototxt):\nbuild_strategy {\n",
       "\n  fuse_all_optimizer_ops: true\n"})
    CHECK_MESSAGE(contains(result.out, part), result.out);
}

TEST_CASE("tune --explain measures the result without each of its settings") {
  const TunedLaunch launch;
  const ChildResult result =
      launch.run({"tune", "--budget=10s", "--explain", "--json", "--nproc_per_node=1", "job.json"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const auto found = nlohmann::json::parse(result.out);
  CHECK(found["explained"].size() == found["settings"].size());  // none if nothing is faster than the job
  for (const auto& effect : found["explained"])
    CHECK(std::ranges::count(found["settings"], effect["name"]) == 1);
}

TEST_CASE("tune --memory keeps the train.global_batch of the job") {
  const TunedLaunch launch;
  const ChildResult result =
      launch.run({"tune", "--budget=2s", "--memory=1G", "--nproc_per_node=2", "global_batch.json"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK_FALSE(contains(result.out, "batch size "));
  CHECK(contains(result.out, "or the job sets data.batch_size or train.global_batch\n"));
}

TEST_CASE("tune refuses what it cannot do, before a rank starts") {
  const TunedLaunch launch;
  CHECK(launch.run({"tune"}).err ==
        "fleetrun: error: found no word, wanted a job file\n  hint: fleetrun tune --help\n");
  CHECK(launch.run({"tune", "--budget=soon", "job.json"}).err ==
        "fleetrun: error: --budget is \"soon\", wanted a time from 1s to 24h, such as 90s, 3m or 1h\n");
  const ChildResult help = launch.run({"tune", "--help"});
  CHECK(help.code == 0);
  CHECK(contains(help.out, "--budget TIME"));
  CHECK(contains(help.out, "--nproc_per_node"));
}

TEST_CASE("tune leaves a file of the user alone, and no temporary folder if no rank starts") {
  const TunedLaunch launch;
  launch.folder.write("logs/tune.json", "my own");
  const ChildResult refused = launch.run({"tune", "--log_dir=logs", "job.json"});
  CHECK(refused.code == 73);
  CHECK(refused.err ==
        "fleetrun: error: logs/tune.json is in the way: a file that fleetrun did not write\n"
        "  hint: choose another folder with --log_dir\n");
  CHECK(launch.folder.read("logs/tune.json") == "my own");
  std::filesystem::create_directory(launch.folder / "tmp");
  ChildOptions all = launch.options();
  all.environment["TMPDIR"] = launch.folder / "tmp";
  CHECK(run_child({FLEETRUN_BINARY, "tune", "no_such.json"}, all).code != 0);
  CHECK(std::filesystem::is_empty(launch.folder / "tmp"));
}

TEST_CASE("tune says that it moved the logs of the run before") {
  const TunedLaunch launch;
  REQUIRE(launch.run({"--nproc_per_node=1", "job.json"}).code == 0);
  const ChildResult result =
      launch.run({"tune", "--budget=1s", "--nproc_per_node=1", "--log_dir=log", "job.json"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK_MESSAGE(result.err == "fleetrun: the logs of the run before are in log/previous/\n", result.err);
  CHECK(launch.run({"tune", "--budget=1s", "--nproc_per_node=1", "--log_dir=log", "job.json"}).code == 0);
}

TEST_CASE("plan prints each layout with its memory, its time, and why it loses") {
  const TunedLaunch launch;
  const ChildResult result = launch.run({"plan", "--hosts=2", "--gpus=2", "--memory=1G", "job.json"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "2 hosts of 2 ranks; per rank"));
  CHECK(contains(result.out, "\ndata parallel 4 "));
  CHECK(contains(result.out, "\ndata parallel 2, pipeline 2 of 8 micro batches "));
  CHECK(contains(result.out, "slower: "));
  const ChildResult small = launch.run({"plan", "--memory=1K", "job.json"});
  CHECK(contains(small.out, "no layout fits: "));
  CHECK(launch.run({"plan", "--hosts=0", "job.json"}).code == 2);
}

TEST_CASE("plan leaves out layouts that a training of the job cannot have") {
  const TunedLaunch launch;
  const auto plan = [&](Words keys) {
    keys.insert(keys.begin(), {"plan", "--hosts=2", "--gpus=8", "job.json"});
    const ChildResult result = launch.run(keys);
    CHECK_MESSAGE(result.code == 0, result.err);
    CHECK(contains(result.out, "\ndata parallel 16 "));
    return result.out;
  };
  const std::string all = plan({});
  CHECK(contains(all, ", pipeline 2 "));
  CHECK_FALSE(contains(all, ", pipeline 4 "));  // the model has two layers
  CHECK_FALSE(contains(all, ", pipeline 16 "));
  CHECK(contains(all, ", sharding stage 3 "));
  for (const char* key : {"strategy.amp=true", "strategy.gradient_merge=true", R"(model.freeze=["f1"])"}) {
    CAPTURE(key);
    const std::string found = plan({key});
    CHECK_FALSE(contains(found, ", pipeline "));
    CHECK(contains(found, ", sharding stage 3 "));
  }
  CHECK(contains(plan({"strategy.sharding_configs.sharding_degree=3"}),
                 ", sharding stage 3 "));  // of the job's own ranks
  const std::string localsgd = plan({"strategy.localsgd=true"});
  CHECK_FALSE(contains(localsgd, ", pipeline "));
  CHECK_FALSE(contains(localsgd, ", sharding "));
}

// The columns of a layout in the table of plan, in GiB: "all", and "buffer", which has the batches that are read ahead.
double planned_gib_without_batches(const std::string& table, const std::string& layout) {
  const std::size_t row = table.find("\n" + layout + "  ");
  REQUIRE_MESSAGE(row != std::string::npos, table);
  std::istringstream columns(table.substr(row + 1 + layout.size()));
  double parameters = 0, gradients = 0, optimizer = 0, activations = 0;
  columns >> parameters >> gradients >> optimizer >> activations;
  return parameters + gradients + optimizer + activations;
}

TEST_CASE("plan predicts what ranks keep of a model of few, large layers") {
  const TunedLaunch launch;
  launch.folder.write("large.json", R"({
"model": {"name": "mlp", "hidden": [8192, 4096]},
"data": {"train": {"format": "synthetic", "samples": 8, "shape": [3, 32, 32], "classes": 4}, "batch_size": 4},
"train": {"max_steps": 1}
})");
  const ChildResult plan = launch.run({"plan", "--hosts=1", "--gpus=2", "large.json"});
  REQUIRE_MESSAGE(plan.code == 0, plan.err);
  const auto stage = [](int number) {
    return Words{"strategy.sharding=true", "strategy.sharding_configs.stage=" + std::to_string(number)};
  };
  const std::vector<std::pair<std::string, Words>> layouts = {
      {"data parallel 2", {}},
      {"data parallel 2, sharding stage 1", stage(1)},
      {"data parallel 2, sharding stage 2", stage(2)},
      {"data parallel 2, sharding stage 3", stage(3)},
      {"data parallel 1, pipeline 2 of 8 micro batches", {"strategy.pipeline=true", "data.batch_size=8"}}};
  for (const auto& each : layouts) {
    const std::string& layout = each.first;
    CAPTURE(layout);
    Words words = {"--nproc_per_node=2", "--device=cpu", "large.json"};
    words.insert(words.end(), each.second.begin(), each.second.end());
    const ChildResult run = launch.run(words);
    REQUIRE_MESSAGE(run.code == 0, run.err);
    const auto train = nlohmann::json::parse(launch.folder.read("log/train.json"));
    const double kept = train["parameter_bytes"].get<double>() + train["gradient_bytes"].get<double>() +
                        train["activation_bytes"].get<double>();
    CHECK(planned_gib_without_batches(plan.out, layout) == doctest::Approx(kept / (1 << 30)).epsilon(0.05));
  }
}

TEST_CASE("plan divides train.global_batch among the ranks, and leaves out pipelines with it") {
  const TunedLaunch launch;
  const auto plan = [&](Words words) {
    words.insert(words.begin(), {"plan", "--hosts=1", "--gpus=2"});
    const ChildResult result = launch.run(words);
    CHECK_MESSAGE(result.code == 0, result.err);
    return result.out;
  };
  const std::string table =
      plan({"global_batch.json"});  // a step of 8 samples, as data.batch_size=4 on 2 ranks
  CHECK(contains(table, "\ndata parallel 2 "));
  CHECK_FALSE(contains(table, ", pipeline "));
  CHECK(plan({"job.json", "train.global_batch=8"}) == table);
  const std::string no_pipelines = R"(model.freeze=["f1"])";
  CHECK(plan({"global_batch.json", no_pipelines}) == plan({"job.json", "data.batch_size=4", no_pipelines}));
}

TEST_CASE("hunt 115: a stopped tune leaves no temporary logs") {
  const TunedLaunch launch;
  launch.folder.write("tmp/mark", "");
  ChildOptions options = launch.options();
  options.environment["TMPDIR"] = launch.folder / "tmp";
  options.environment["FLEETRUN_CACHE_DIR"] = launch.folder / "cache";
  ChildProcess tune({FLEETRUN_BINARY, "tune", "--nproc_per_node=2", "--budget=100s", "job.json"}, options);
  const auto folders = [&] {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(launch.folder / "tmp"))
      if (entry.path().filename() != "mark") found.push_back(entry.path());
    return found;
  };
  const auto ranks_work = [&] {
    const std::vector<std::string> found = folders();
    return !found.empty() && std::filesystem::exists(found.front() + "/workerlog.1");
  };
  REQUIRE(comes_true(ranks_work, std::chrono::minutes(1)));
  tune.send(SIGINT);
  CHECK(tune.wait().code == 130);
  CHECK(folders().empty());
}

}  // namespace
}  // namespace fleetrun::tune_command_test
