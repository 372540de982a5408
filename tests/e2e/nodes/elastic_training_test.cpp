// Trainings of elastic runs: the weights, and the samples of each epoch.
#include <functional>

#include "e2e/nodes/cluster.h"
#include "e2e/weight_files.h"

namespace fleetrun::elastic_training_test {
namespace {

const char* const kJob = R"({
  "model": {"name": "mlp", "hidden": [256]},
  "data": {"train": {"format": "synthetic", "samples": 960, "shape": [1, 16, 16], "classes": 4}, "batch_size": 16, "uneven": "drop"},
  "optimizer": {"name": "momentum", "learning_rate": 0.001},
  "train": {"epochs": 300, "log_every": 100000, "threads": 1},
  "checkpoint": {"dir": "checkpoints", "every_steps": 100}
})";

bool has_checkpoint(const std::string& folder) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (contains(entry.path().filename(), "-step-") &&
        std::filesystem::exists(entry.path() / "manifest.json"))
      return true;
  return false;
}

TEST_CASE(
    "hunt 24: an elastic training does not start with a strategy that some number of nodes cannot have") {
  Cluster cluster(1);
  std::ofstream(cluster.folder(0) + "/job.json") << kJob;
  const auto start = [&](const Words& words) {
    Words all = {"--nnodes=2:4", "--master=127.0.0.1:" + std::to_string(cluster.port()), "--join_timeout=1",
                 "--device=cpu"};
    all.insert(all.end(), words.begin(), words.end());
    cluster.start_exactly(0, all);
    return cluster.end_of(0);
  };
  const Words in_sets = {"job.json", "strategy.sharding=true", "strategy.sharding_configs.sharding_degree=2"};
  const ChildResult refused = start(in_sets);
  CHECK(refused.code == 78);
  CHECK_MESSAGE(contains(refused.err,
                         "the run may go on with 3 nodes and 3 ranks: strategy.sharding_configs: "
                         "sharding_degree is 2 for 3 ranks, wanted sharding_degree * dp_degree = 3"),
                refused.err);
  const Words in_stages = {"job.json", "strategy.pipeline=true", "strategy.hybrid_configs.pp_degree=2"};
  CHECK(
      contains(start(in_stages).err, "pp_degree is 2, wanted a divisor of the number of ranks, which is 3"));
  CHECK(contains(start({"job.json", "data.batch_size=null", "train.global_batch=3"}).err,
                 "the run may go on with 4 nodes and 4 ranks: "));
  Words fitting = in_sets;
  fitting.insert(fitting.begin(), "--nproc_per_node=2");
  CHECK(start(fitting).code == 75);  // nobody else came
}

TEST_CASE("a training goes on from its last checkpoint with fewer ranks, and does all its epochs") {
  Cluster cluster(3);
  for (int node = 0; node < 3; ++node) std::ofstream(cluster.folder(node) + "/job.json") << kJob;
  cluster.start({"--nnodes=2:3", "--nproc_per_node=1", "--device=cpu", "job.json"});
  const std::string checkpoints = cluster.folder(0) + "/output/checkpoints";
  REQUIRE(comes_true([&] { return has_checkpoint(checkpoints); }, within(Cluster::kLimit)));
  cluster.kill(1);
  for (const int node : {0, 2}) {
    const ChildResult end = cluster.end_of(node);
    CHECK_MESSAGE(end.code == 0, end.err);
  }
  CHECK_MESSAGE(contains(cluster.log(0, 0), "resuming from " + checkpoints), cluster.log(0, 0));
  const auto report = cluster.report(0);
  CHECK(report["train"]["world_size"] == 2);
  CHECK(report["train"]["epochs"] == 300);
  CHECK(report["train"]["steps"] == 300 * (960 / 32));
  const auto stand_still = report["stand_stills"].at(0);
  double sum = 0;
  for (const char* part :
       {"detection_s", "stop_s", "pause_s", "join_s", "start_s", "load_s", "first_step_s"}) {
    CHECK(stand_still[part] >= 0);
    sum += stand_still[part].get<double>();
  }
  CHECK(stand_still["load_s"] > 0);
  CHECK(stand_still["first_step_s"] > 0);
  CHECK(stand_still["seconds"] == doctest::Approx(sum));
  CHECK(cluster.nothing_left());
}

const char* const kJobWithFiles = R"({
  "model": {"name": "mlp", "hidden": [64]},
  "data": {"train": {"format": "idx", "images": "images.idx.gz", "labels": "labels.idx.gz"}, "batch_size": 16},
  "train": {"epochs": 1000000, "log_every": 100000, "threads": 1},
  "checkpoint": {"dir": "checkpoints", "every_steps": 100}
})";

TEST_CASE("hunt 44: a training goes on without a node that joins late and has other data") {
  Cluster cluster(3);
  const std::string patterns = std::string(FLEETRUN_SOURCE_DIR) + "/configs/patterns/";
  for (int node = 0; node < 3; ++node) {
    std::ofstream(cluster.folder(node) + "/job.json") << kJobWithFiles;
    const std::string set = node == 2 ? "test" : "train";
    for (const char* part : {"images", "labels"})
      std::filesystem::copy_file(patterns + set + "-" + part + ".idx.gz",
                                 cluster.folder(node) + "/" + part + ".idx.gz");
  }
  const Words words = {"--nnodes=2:3", "--elastic_timeout=0.2", "--nproc_per_node=1", "--device=cpu",
                       "job.json"};
  cluster.start(0, words);
  cluster.start(1, words);
  REQUIRE(comes_true([&] { return has_checkpoint(cluster.folder(0) + "/output/checkpoints"); },
                     within(Cluster::kLimit)));
  cluster.start(2, words);
  const ChildResult refused = cluster.end_of(2);
  CHECK_MESSAGE(refused.code == 76, refused.err);
  CHECK_MESSAGE(contains(refused.err, "number of samples"), refused.err);
  REQUIRE(cluster.says(0, "the run goes on without 127.0.0.3"));
  REQUIRE(comes_true([&] { return contains(cluster.log(0, 0), "resuming from "); }, within(Cluster::kLimit)));
  cluster.send(0, SIGTERM);
  for (const int node : {0, 1}) {
    const ChildResult end = cluster.end_of(node);
    CHECK_MESSAGE(end.code == 128 + SIGTERM, end.err);
  }
  CHECK(cluster.nothing_left());
}

// The checkpoints in the folder by step, oldest first. One that is being removed does not count.
std::map<int, std::string> checkpoints_in(const std::string& folder) {
  std::map<int, std::string> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename();
    const std::size_t step = name.find("-step-");
    if (step != std::string::npos && std::filesystem::exists(entry.path() / "manifest.json"))
      found[std::stoi(name.substr(step + 6))] = entry.path();
  }
  return found;
}

// The step at which the log says that the ranks went on from a checkpoint.
int resumed_at(const std::string& log) {
  const std::size_t line = log.find("resuming from ");
  REQUIRE_MESSAGE(line != std::string::npos, log);
  return std::stoi(log.substr(log.find("(step ", line) + 6));
}

const char* const kEndlessJob = R"({
  "model": {"name": "mlp", "hidden": [128]},
  "data": {"train": {"format": "synthetic", "samples": 1000, "shape": [1, 16, 16], "classes": 4}, "batch_size": 16},
  "optimizer": {"name": "momentum", "learning_rate": 0.001},
  "train": {"max_steps": 100000000, "log_every": 100000, "threads": 1},
  "checkpoint": {"dir": "checkpoints", "every_steps": 70, "resume": "auto"}
})";

const char* const kGlobalBatch = R"(train.global_batch=64)";
const char* const kPiecewise =
    R"(optimizer.learning_rate={"name": "piecewise", "boundaries": [50, 150, 250], "values": [0.001, 0.002, 0.001, 0.0005]})";

// The numbers of ranks of an elastic run, each with the step at which it ended.
using History = std::vector<std::pair<int, int>>;

struct ElasticRun {
  Cluster& cluster;
  Words overrides;

  void start(int node, const std::string& logs) {
    Words words = {"--nnodes=3:4", "--nproc_per_node=1", "--device=cpu", "--log_dir=" + logs, "job.json"};
    words.insert(words.end(), overrides.begin(), overrides.end());
    cluster.start(node, words);
  }

  // Runs on 4 nodes, on 3 after `lose` took node 1, and again on 4 when node 1 has come back. Ends by SIGTERM after a checkpoint.
  History change_nodes(const std::function<void()>& lose) {
    const std::string own = cluster.folder(0) + "/output/checkpoints";
    for (int node = 0; node < 4; ++node) {
      std::ofstream(cluster.folder(node) + "/job.json") << kEndlessJob;
      start(node, "log");
    }
    REQUIRE(comes_true([&] { return !checkpoints_in(own).empty(); }, within(Cluster::kLimit)));
    lose();
    start(1, "again");
    REQUIRE(cluster.says(0, "the run goes on with 4 nodes and 4 ranks"));
    REQUIRE(
        comes_true([&] { return contains(cluster.log(0, 0), "resuming from "); }, within(Cluster::kLimit)));
    const int fewer = resumed_at(cluster.read(0, "log/attempt-1/workerlog.0"));
    const int again = resumed_at(cluster.log(0, 0));
    CHECK(fewer < again);
    REQUIRE(comes_true([&] { return checkpoints_in(own).rbegin()->first > again; }, within(Cluster::kLimit)));
    cluster.send(0, SIGTERM);
    for (const int node : {0, 1, 2, 3}) CHECK(cluster.end_of(node).code == 143);
    return {{4, fewer}, {3, again}, {4, checkpoints_in(own).rbegin()->first}};
  }

  std::string weights() const {
    return read_all(checkpoints_in(cluster.folder(0) + "/output/checkpoints").rbegin()->second +
                    "/model.safetensors");
  }
};

// The weights after runs on one host with these numbers of ranks.
std::string weights_after(const History& history, const Words& overrides) {
  const Launch reference;
  reference.folder.write("job.json", kEndlessJob);
  for (const auto& [ranks, steps] : history) {
    Words words = {"--nproc_per_node=" + std::to_string(ranks), "--device=cpu", "job.json",
                   "train.max_steps=" + std::to_string(steps)};
    words.insert(words.end(), overrides.begin(), overrides.end());
    const ChildResult part = reference.run_words(words);
    REQUIRE_MESSAGE(part.code == 0, part.err);
  }
  const auto last = *checkpoints_in(reference.folder / "output/checkpoints").rbegin();
  CHECK(last.first == history.back().second);
  return read_all(last.second + "/model.safetensors");
}

TEST_CASE("the weights after 4 -> 3 -> 4 nodes are those of three runs with these numbers of ranks") {
  for (const Words& overrides : {Words{}, Words{kGlobalBatch, "data.uneven=drop", kPiecewise}}) {
    CAPTURE(overrides.size());
    Cluster cluster(4);
    ElasticRun run = {cluster, overrides};
    const History history = run.change_nodes([&] {
      cluster.kill(1);
      REQUIRE(cluster.says(0, "the run goes on with 3 nodes and 3 ranks"));
    });
    CHECK(testing::greatest_difference(run.weights(), weights_after(history, overrides)) <= 1e-6);
    if (!overrides.empty())  // on any number of ranks
      CHECK(testing::relative_difference(run.weights(),
                                         weights_after({{1, history.back().second}}, overrides)) < 1e-4);
  }
}

TEST_CASE("with a global batch a node that loses its network changes the weights only by rounding") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const Namespaces network(4);
  Cluster cluster(4, &network);
  ElasticRun run = {cluster, {kGlobalBatch, "data.uneven=drop"}};
  const History history = run.change_nodes([&] {
    network.drop_all(1);
    REQUIRE(cluster.says(0, "the run goes on with 3 nodes and 3 ranks"));
    cluster.kill(1);
    network.let_through(1);
  });
  CHECK_MESSAGE(
      contains(cluster.log(0, 0),
               "4 ranks with 64 samples in each step now, 3 ranks with 64 samples in each step before"),
      cluster.log(0, 0));
  CHECK(testing::greatest_difference(run.weights(), weights_after(history, run.overrides)) <= 1e-6);
}

}  // namespace
}  // namespace fleetrun::elastic_training_test
