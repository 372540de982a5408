// Trainings of 2 hosts with 2 ranks each, beside the same training of 4 ranks on one host: strategies, checkpoints, and the choices
// that are made at the start.
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

std::string weights_on_one_host(const Words& strategy) {
  const Launch launch;
  launch.folder.write("job.json", kJob);
  Words words = {"--nproc_per_node=4", "--device=cpu", "job.json", "train.threads=1"};
  words.insert(words.end(), strategy.begin(), strategy.end());
  words.insert(words.begin(), FLEETRUN_BINARY);
  const ChildResult result = run_child(words, launch.options());
  REQUIRE_MESSAGE(result.code == 0, result.err);
  return launch.folder.read("output/model.safetensors");
}

struct Hosts {
  int ranks = 2;  // of each
  Namespaces network;
  Cluster cluster;

  explicit Hosts(int hosts = 2) : ranks(4 / hosts), network(hosts), cluster(hosts, &network) {
    for (int node = 0; node < hosts; ++node) std::ofstream(cluster.folder(node) + "/job.json") << kJob;
  }
  void start(const Words& words, const Words& flags = {}) {
    Words all = flags;
    all.insert(all.end(),
               {"--nproc_per_node=" + std::to_string(ranks), "--device=cpu", "job.json", "train.threads=1"});
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

const std::string kStages = "strategy.pipeline=true";

const Words kLenet = {"model.name=lenet", "optimizer.learning_rate=0.001"};

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void check_over_hosts(int count, const Words& words) {
  CAPTURE(count);
  CAPTURE(words.back());
  Hosts hosts(count);
  CHECK(hosts.weights_with(words) == weights_on_one_host(words));
  const bool has_stages = words.back() == kStages;
  CHECK(contains(hosts.cluster.log(0, 0),
                 has_stages ? "rank 0: each stage of the pipeline sends"
                            : "rank 0: all-reduces by 1 communicator, each"));  // nothing was measured
}

TEST_CASE("20 steps on 2 hosts x 2 ranks, and on 4 hosts, give the bits of 1 host x 4 ranks") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Words& reduce = kStrategies[1];
  check_over_hosts(2, {"train.epochs=4"});
  check_over_hosts(2, reduce);
  check_over_hosts(4, {"train.epochs=4"});
  check_over_hosts(2, kLenet);
  check_over_hosts(4, joined(kLenet, reduce));
  check_over_hosts(2, {"strategy.sync_batch_norm=true"});
  check_over_hosts(2, {kStages});
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
    Hosts whole, killed;
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
  Hosts hosts;
  hosts.weights_with({"strategy.cudnn_exhaustive_search=true", "train.epochs=1"});
  const std::string log = hosts.cluster.log(0, 0);
  CHECK_MESSAGE(contains(log, "rank 0: an all-reduce of 1 MiB takes "), log);
  const bool in_groups = contains(log, ": taking the leaders\n") || contains(log, ": taking the slices\n");
  CHECK(in_groups == contains(log, "rank 0: all-reduces by 1 communicator, in groups of 2 ranks by "));
  CHECK(in_groups != contains(log, ": taking all ranks at once\n"));
  CHECK_FALSE(contains(hosts.cluster.log(1, 0), "an all-reduce of 1 MiB"));
}

TEST_CASE("groups of the ranks of a node need the same number on each node, which all nodes say") {
  Cluster cluster(2);
  for (const int node : {0, 1}) {
    std::ofstream(cluster.folder(node) + "/job.json") << kJob;
    cluster.start(node, {"--nproc_per_node=" + std::to_string(2 - node), "--device=cpu", "job.json",
                         "strategy.use_hierarchical_allreduce=true"});
  }
  for (const ChildResult& end : cluster.ends()) {
    CHECK_MESSAGE(end.code == 78, end.err);
    CHECK_MESSAGE(
        contains(end.err,
                 "wanted the same number on each node: the node of rank 0 has 2, that of rank 2 has 1"),
        end.err);
  }
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
