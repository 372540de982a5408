// Trainings of elastic runs: the weights, and the samples of each epoch.
#include <cmath>
#include <cstring>

#include "e2e/nodes/cluster.h"

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

// Header and data of the format are equal but for the numbers, which are all f32.
double greatest_difference(const std::string& one, const std::string& other) {
  REQUIRE(one.size() == other.size());
  std::uint64_t header = 0;
  std::memcpy(&header, one.data(), sizeof header);
  const std::size_t begin = sizeof header + header;
  REQUIRE(one.substr(0, begin) == other.substr(0, begin));
  double greatest = 0;
  for (std::size_t at = begin; at + sizeof(float) <= one.size(); at += sizeof(float)) {
    float a = 0, b = 0;
    std::memcpy(&a, one.data() + at, sizeof a);
    std::memcpy(&b, other.data() + at, sizeof b);
    greatest = std::max(greatest, std::abs(double{a} - double{b}));
  }
  return greatest;
}

const char* const kEndlessJob = R"({
  "model": {"name": "mlp", "hidden": [128]},
  "data": {"train": {"format": "synthetic", "samples": 1000, "shape": [1, 16, 16], "classes": 4}, "batch_size": 16},
  "optimizer": {"name": "momentum", "learning_rate": 0.001},
  "train": {"max_steps": 100000000, "log_every": 100000, "threads": 1},
  "checkpoint": {"dir": "checkpoints", "every_steps": 70, "resume": "auto"}
})";

TEST_CASE("the weights after 4 -> 3 -> 4 nodes are those of three runs with these numbers of ranks") {
  Cluster cluster(4);
  const auto start = [&](int node, const std::string& logs) {
    cluster.start(node,
                  {"--nnodes=3:4", "--nproc_per_node=1", "--device=cpu", "--log_dir=" + logs, "job.json"});
  };
  for (int node = 0; node < 4; ++node) {
    std::ofstream(cluster.folder(node) + "/job.json") << kEndlessJob;
    start(node, "log");
  }
  const std::string own = cluster.folder(0) + "/output/checkpoints";
  REQUIRE(comes_true([&] { return !checkpoints_in(own).empty(); }, within(Cluster::kLimit)));
  cluster.kill(1);
  REQUIRE(cluster.says(0, "the run goes on with 3 nodes and 3 ranks"));
  start(1, "again");
  REQUIRE(cluster.says(0, "the run goes on with 4 nodes and 4 ranks"));
  REQUIRE(comes_true([&] { return contains(cluster.log(0, 0), "resuming from "); }, within(Cluster::kLimit)));
  const int fewer = resumed_at(cluster.read(0, "log/attempt-1/workerlog.0"));
  const int again = resumed_at(cluster.log(0, 0));
  CHECK(fewer < again);
  REQUIRE(comes_true([&] { return checkpoints_in(own).rbegin()->first > again; }, within(Cluster::kLimit)));
  cluster.send(0, SIGTERM);
  for (const int node : {0, 1, 2, 3}) CHECK(cluster.end_of(node).code == 143);
  const auto [end, weights] = *checkpoints_in(own).rbegin();

  const Launch reference;
  reference.folder.write("job.json", kEndlessJob);
  for (const auto& [ranks, steps] : {std::pair(4, fewer), std::pair(3, again), std::pair(4, end)}) {
    const ChildResult part = reference.run_words({"--nproc_per_node=" + std::to_string(ranks), "--device=cpu",
                                                  "job.json", "train.max_steps=" + std::to_string(steps)});
    REQUIRE_MESSAGE(part.code == 0, part.err);
  }
  const auto last = *checkpoints_in(reference.folder / "output/checkpoints").rbegin();
  CHECK(last.first == end);
  CHECK(greatest_difference(read_all(weights + "/model.safetensors"),
                            read_all(last.second + "/model.safetensors")) <= 1e-6);
}

}  // namespace
}  // namespace fleetrun::elastic_training_test
