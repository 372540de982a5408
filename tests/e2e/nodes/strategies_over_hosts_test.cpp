// Trainings of 2 hosts with 2 ranks each, beside the same training of 4 ranks on one host: strategies, checkpoints, and the choices
// that are made at the start.
#include <cmath>
#include <cstring>
#include <span>

#include "e2e/nodes/cluster.h"

namespace fleetrun::strategies_over_hosts_test {
namespace {

// Everything that has a state: shuffling, augmentation, velocity, running statistics, a schedule.
const std::string kJob = R"({
  "model": {"name": "resnet20"},
  "data": {"train": {"format": "synthetic", "samples": 160, "shape": [3, 12, 12], "classes": 4, "augment": "crop_flip"},
           "batch_size": 8, "loader_threads": 1},
  "optimizer": {"name": "momentum", "learning_rate": {"name": "cosine", "base": 0.02, "warmup_steps": 3}},
  "train": {"epochs": 4, "log_every": 1, "check_weights_every": 5},
  "strategy": {"cudnn_exhaustive_search": false}
})";

using Weights = std::map<std::string, std::vector<float>>;

// Of a safetensors file: 8 bytes with the length of the header, the header, the numbers.
Weights weights_in(const std::string& file) {
  REQUIRE(file.size() > 8);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const char* const numbers = file.data() + 8 + length;
  Weights weights;
  const auto header = nlohmann::json::parse(file.substr(8, length));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__" || entry["dtype"] != "F32") continue;
    const std::size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    std::vector<float>& values = weights[name];
    values.resize((end - begin) / sizeof(float));
    std::memcpy(values.data(), numbers + begin, end - begin);
  }
  return weights;
}

double norm_of(std::span<const float> values, std::span<const float> less = {}) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    sum += std::pow(double{values[i]} - (less.empty() ? 0.0 : double{less[i]}), 2);
  return std::sqrt(sum);
}

void check_close(const std::string& file, const std::string& wanted_file) {
  const Weights found = weights_in(file), wanted = weights_in(wanted_file);
  REQUIRE(found.size() == wanted.size());
  CHECK(wanted.size() >= 8);
  for (const auto& [name, values] : wanted) {
    CAPTURE(name);
    CHECK(norm_of(found.at(name), values) <= 1e-5 * norm_of(values));
  }
}

std::string weights_on_one_host(const Words& strategy, const std::string& backend = "auto") {
  const Launch launch;
  launch.folder.write("job.json", kJob);
  Words words = {"--nproc_per_node=4", "--device=cpu", "job.json"};
  words.insert(words.end(), strategy.begin(), strategy.end());
  words.insert(words.begin(), FLEETRUN_BINARY);
  ChildOptions options = launch.options();
  options.environment["FLEETRUN_COMM_BACKEND"] = backend;
  const ChildResult result = run_child(words, options);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  return launch.folder.read("output/model.safetensors");
}

struct TwoHosts {
  Namespaces network{2};
  Cluster cluster{2, &network};

  explicit TwoHosts(const std::string& job = kJob) {
    for (const int node : {0, 1}) std::ofstream(cluster.folder(node) + "/job.json") << job;
  }
  void start(const Words& words, const Words& flags = {}) {
    Words all = flags;
    all.insert(all.end(), {"--nproc_per_node=2", "--device=cpu", "job.json"});
    all.insert(all.end(), words.begin(), words.end());
    cluster.start(all);
  }
  void finish() {
    for (const ChildResult& end : cluster.ends()) REQUIRE_MESSAGE(end.code == 0, end.err);
  }
  std::string weights_with(const Words& words) {
    start(words);
    finish();
    return cluster.read(0, "output/model.safetensors");
  }
};

const std::vector<Words> kStrategies = {
    {},
    {"strategy.build_strategy.reduce_strategy=Reduce"},
};

// With batch norms and few samples, ReLUs soon multiply the rounding by ten in each step, at the rates that one trains with. At this
// one the gradients stay alike; the biases start at 0, and show each wrong sum.
const Words kStill = {"optimizer.learning_rate=1e-6"};
const Words kLenet = {"model.name=lenet", "optimizer.learning_rate=0.001"};

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void check_over_hosts(const Words& words) {
  CAPTURE(words.back());
  TwoHosts hosts, again;
  const std::string found = hosts.weights_with(words);
  check_close(found, weights_on_one_host(words));
  CHECK(again.weights_with(words) == found);
  CHECK(contains(hosts.cluster.log(0, 0),
                 "rank 0: all-reduces by 1 communicator, each"));  // nothing was measured
}

TEST_CASE("20 steps on 2 hosts x 2 ranks give the weights of 1 host x 4 ranks, and the same bits each time") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  for (const Words& strategy : {kStrategies[0], kStrategies[1]}) check_over_hosts(joined(kStill, strategy));
  for (const Words& strategy : {kStrategies[0], kStrategies[1]}) check_over_hosts(joined(kLenet, strategy));
}

// Sums within the network make its rounding grow faster still: compared with ranks of one host that sum in the same order.
TEST_CASE("20 steps with sync_batch_norm on 2 hosts x 2 ranks give the bits of 1 host x 4 ranks with Gloo") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Words words = {"strategy.sync_batch_norm=true"};
  TwoHosts hosts;
  CHECK(hosts.weights_with(words) == weights_on_one_host(words, "gloo"));
}

pid_t pid_of_rank(const Cluster& cluster, int node, int rank) {
  for (const pid_t pid : cluster.left_on(node))
    if (contains(read_all("/proc/" + std::to_string(pid) + "/environ"),
                 "PADDLE_TRAINER_ID=" + std::to_string(rank) + '\0'))
      return pid;
  FAIL("no process of rank " << rank);
  return -1;
}

TEST_CASE("a training over 2 hosts that is killed and goes on from its checkpoint ends with the same bytes") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Words checkpoints = {"checkpoint.dir=saved", "train.epochs=8"};
  for (const Words& strategy : {kStrategies[0], kStrategies[1]}) {
    const std::string title = strategy.empty() ? "usual" : strategy[0];
    CAPTURE(title);
    const Words words = joined(checkpoints, strategy);
    TwoHosts whole, killed;
    const std::string wanted = whole.weights_with(words);
    killed.start(words, {"--max_restart=1", "--restart_delay=0.1"});
    REQUIRE(comes_true([&] { return contains(killed.cluster.log(0, 0), "-step-10"); }, within(60s)));
    ::kill(pid_of_rank(killed.cluster, 1, 3), SIGKILL);
    killed.finish();
    CHECK(killed.cluster.report(0)["earlier_attempts"].size() == 1);
    CHECK_MESSAGE(contains(killed.cluster.log(0, 0), "resuming from "), killed.cluster.log(0, 0));
    CHECK(killed.cluster.read(0, "output/model.safetensors") == wanted);
  }
}

TEST_CASE(
    "with the search, ranks of 2 hosts measure whether groups are faster, and rank 0 says what it takes") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  TwoHosts hosts;
  hosts.weights_with({"strategy.cudnn_exhaustive_search=true", "train.epochs=1"});
  const std::string log = hosts.cluster.log(0, 0);
  CHECK_MESSAGE(contains(log, "rank 0: an all-reduce of 1 MiB takes "), log);
  const bool in_groups = contains(log, ": taking the leaders\n") || contains(log, ": taking the slices\n");
  CHECK(in_groups == contains(log, "rank 0: all-reduces by 1 communicator, in groups of 2 ranks by "));
  CHECK(in_groups != contains(log, ": taking all ranks at once\n"));
  CHECK_FALSE(contains(hosts.cluster.log(1, 0), "an all-reduce of 1 MiB"));
}

TEST_CASE("nodes whose data differs end with 76, and name both nodes, the file and the sample") {
  Cluster cluster(2);
  const std::string job = R"({
    "model": {"name": "lenet"},
    "data": {"train": {"format": "cifar_bin", "path": "train.bin"}, "batch_size": 4},
    "optimizer": {"name": "sgd", "learning_rate": 0.01},
    "train": {"max_steps": 2}
  })";
  for (const int node : {0, 1}) {
    std::ofstream(cluster.folder(node) + "/job.json") << job;
    std::ofstream data(cluster.folder(node) + "/train.bin", std::ios::binary);
    for (int i = 0; i < 10; ++i)
      data << static_cast<char>(i) << std::string(3 * 32 * 32, i == 4 && node == 1 ? 'x' : 'y');
  }
  for (const ChildResult& end : cluster.run({"--nproc_per_node=2", "--device=cpu", "job.json"})) {
    CHECK_MESSAGE(end.code == 76, end.err);
    CHECK_MESSAGE(contains(end.err, "the nodes have different data (node 0, "), end.err);
    CHECK_MESSAGE(contains(end.err, " and node 1, "), end.err);
    CHECK_MESSAGE(
        contains(end.err, "data.train, sample 4 (train.bin, image 4): rank 0 has 3073 bytes of hash "),
        end.err);
  }
}

}  // namespace
}  // namespace fleetrun::strategies_over_hosts_test
