// Trainings of the embedded runtime over several nodes, each with its own copy of the job and its data.
#include <arpa/inet.h>
#include <sys/socket.h>

#include "e2e/faults/terminal_child.h"
#include "e2e/nodes/cluster.h"

namespace fleetrun::training_over_nodes_test {
namespace {

// Somebody accepts connections there.
bool is_listened_at(const std::string& address, int port) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place = {.sin_family = AF_INET,
                       .sin_port = htons(static_cast<std::uint16_t>(port)),
                       .sin_addr = {},
                       .sin_zero = {}};
  ::inet_pton(AF_INET, address.c_str(), &place.sin_addr);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
}

const std::string kConfigs = FLEETRUN_SOURCE_DIR "/configs";

void give_quickstart(const Cluster& cluster) {
  for (int node = 0; node < cluster.nodes(); ++node) {
    std::filesystem::copy(kConfigs + "/patterns", cluster.folder(node) + "/patterns");
    std::filesystem::copy_file(kConfigs + "/quickstart.json", cluster.folder(node) + "/quickstart.json");
  }
}

void check_quickstart(Cluster& cluster) {
  give_quickstart(cluster);
  const auto ends = cluster.run({"--nproc_per_node=2", "--device=cpu", "quickstart.json"});
  for (const ChildResult& end : ends) REQUIRE_MESSAGE(end.code == 0, end.err);
  CHECK_MESSAGE(contains(cluster.log(0, 0), "accuracy 1.0"), cluster.log(0, 0));
  CHECK(cluster.report(0)["ranks"].size() == 4);
  CHECK(std::filesystem::exists(cluster.folder(0) + "/output/model.safetensors"));
  CHECK(cluster.nothing_left());
}

TEST_CASE("the quickstart job trains on 2 nodes with 2 ranks each to accuracy 1.0") {
  Cluster cluster(2);
  check_quickstart(cluster);
}

TEST_CASE("the quickstart job trains on 2 hosts with 2 ranks each to accuracy 1.0") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(2);
  Cluster cluster(2, &network);
  check_quickstart(cluster);
}

TEST_CASE("hunt 38: every node's console has the error of a rank, also if the rank is on another node") {
  Cluster cluster(2);
  give_quickstart(cluster);
  std::filesystem::resize_file(cluster.folder(1) + "/patterns/train-images.idx.gz", 20000);
  for (const ChildResult& end : cluster.run({"--nproc_per_node=1", "--device=cpu", "quickstart.json"})) {
    CHECK(end.code != 0);
    CHECK_MESSAGE(contains(end.out + end.err, "train-images.idx.gz"), end.err);
    CHECK_MESSAGE(contains(end.out + end.err, "rank 1: error: "), end.err);
  }
}

TEST_CASE("nodes may have different numbers of ranks, which have different numbers of threads") {
  Cluster cluster(2);
  give_quickstart(cluster);
  for (const int node : {0, 1})
    cluster.start(node, {"--nproc_per_node=" + std::to_string(1 + node), "--device=cpu", "quickstart.json",
                         "train.epochs=1"});
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
}

TEST_CASE("ranks on unlike processors use the instructions that all of them have, and rank 0 says which") {
  Cluster cluster(2);
  cluster.set(1, "ONEDNN_MAX_CPU_ISA", "SSE41");
  give_quickstart(cluster);
  for (const ChildResult& end :
       cluster.run({"--nproc_per_node=1", "--device=cpu", "quickstart.json", "train.epochs=1"}))
    REQUIRE_MESSAGE(end.code == 0, end.err);
  CHECK_MESSAGE(
      contains(cluster.log(0, 0),
               "rank 0: the processors of the ranks differ; all ranks use the instructions of SSE41\n"),
      cluster.log(0, 0));
}

const std::string kShortJob = R"({
  "model": {"name": "mlp", "hidden": [64]},
  "data": {"train": {"format": "synthetic", "samples": 256, "shape": [1, 8, 8], "classes": 4}, "batch_size": 16},
  "optimizer": {"name": "momentum", "learning_rate": 0.001},
  "train": {"max_steps": 30, "log_every": 100}
})";

std::string weights_of(Cluster& cluster, const std::string& ranks) {
  for (int node = 0; node < cluster.nodes(); ++node) {
    std::ofstream(cluster.folder(node) + "/job.json") << kShortJob;
    cluster.set(node, "FLEETRUN_COMM_BACKEND", "gloo");
  }
  for (const ChildResult& end : cluster.run({"--nproc_per_node=" + ranks, "--device=cpu", "job.json"}))
    REQUIRE_MESSAGE(end.code == 0, end.err);
  return cluster.read(0, "output/model.safetensors");
}

TEST_CASE("4 ranks end with the same weights, bit by bit, on 2 nodes and on 4") {
  Cluster two(2), four(4);
  const std::string wanted = weights_of(two, "2");
  CHECK_FALSE(wanted.empty());
  CHECK(weights_of(four, "1") == wanted);
}

pid_t worker_on(const Cluster& cluster, int node) {
  for (const pid_t pid : cluster.left_on(node))
    if (read_all("/proc/" + std::to_string(pid) + "/comm") == "fleetrun-worker\n") return pid;
  return 0;
}

TEST_CASE(
    "a job file that is edited before a restart changes nothing: the ranks get what was read at the start") {
  Cluster cluster(2);
  for (const int node : {0, 1}) std::ofstream(cluster.folder(node) + "/job.json") << kShortJob;
  cluster.start(
      {"--max_restart=1", "--restart_delay=0.01", "--device=cpu", "job.json", "train.max_steps=100000000"});
  const auto trains = [&](const std::string& log) {
    return comes_true([&] { return contains(cluster.read(1, log), "[Epoch 0, batch 0]"); },
                      within(Cluster::kLimit));
  };
  REQUIRE(trains("log/workerlog.0"));
  std::ofstream(cluster.folder(1) + "/job.json") << "edited";
  ::kill(worker_on(cluster, 1), SIGKILL);
  REQUIRE(trains("log/attempt-0/workerlog.0"));
  REQUIRE(trains("log/workerlog.0"));
  cluster.send(0, SIGTERM);
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 143, end.err);
}

TEST_CASE("the metrics of the first node have the steps and the speed of all ranks") {
  Cluster cluster(2);
  for (const int node : {0, 1}) {
    std::ofstream(cluster.folder(node) + "/job.json") << kShortJob;
    Words words = {"--nproc_per_node=2", "--device=cpu", "job.json"};
    if (node == 0) words.insert(words.begin(), "--metrics_file=metrics.prom");
    cluster.start(node, words);
  }
  for (const ChildResult& end : cluster.ends()) REQUIRE_MESSAGE(end.code == 0, end.err);
  const std::string metrics = cluster.read(0, "metrics.prom");
  for (const char* rank : {"0", "1", "2", "3"}) {
    CAPTURE(rank);
    const std::string label = std::string("{rank=\"") + rank + "\"";
    CHECK_MESSAGE(contains(metrics, "fleetrun_step" + label + "} 30\n"), metrics);
    CHECK(contains(metrics, "fleetrun_phase" + label + ",phase=\"finished\"} 1\n"));
    CHECK(contains(metrics, "fleetrun_images_per_second" + label + "} "));
    CHECK_FALSE(contains(metrics, "fleetrun_images_per_second" + label + "} 0\n"));
  }
}

TEST_CASE("the progress line of the first node is about the ranks of all nodes") {
  Cluster cluster(2);
  const std::string slow = cluster.shared() / "slow.sh", go = cluster.shared() / "go";
  cluster.shared().write("slow.sh", "while [ ! -e " + go + " ]; do sleep 0.05; done\nexec \"$@\"\n");
  for (const int node : {0, 1}) std::ofstream(cluster.folder(node) + "/job.json") << kShortJob;
  const Words words = {"--debug_rank=1=/bin/sh " + slow, "--device=cpu", "job.json"};
  Words first = {"/usr/bin/env", "HOME=" + cluster.home(), "TERM=xterm", FLEETRUN_BINARY};
  for (const Words& part : {cluster.by_list(0), words}) first.insert(first.end(), part.begin(), part.end());
  TerminalChild terminal(first, cluster.folder(0));
  cluster.start(1, words);
  CHECK_MESSAGE(terminal.shows("waiting for rank 1", within(20s)), terminal.screen());
  cluster.shared().write("go", "");
  CHECK(terminal.wait(within(Cluster::kLimit)) == 0);
  CHECK(cluster.end_of(1).code == 0);
}

TEST_CASE("a rank of a training that is killed ends all nodes with its signal, and the rank is named") {
  Cluster cluster(2);
  for (const int node : {0, 1}) std::ofstream(cluster.folder(node) + "/job.json") << kEndlessJob;
  cluster.start({"--nproc_per_node=2", "--device=cpu", "job.json"});
  REQUIRE(comes_true([&] { return contains(cluster.log(1, 1), "[Epoch 2"); }, within(60s)));
  for (const pid_t pid : cluster.left_on(1)) {
    const std::string environment = read_all("/proc/" + std::to_string(pid) + "/environ");
    if (contains(environment, std::string("PADDLE_TRAINER_ID=3") + '\0')) ::kill(pid, SIGKILL);
  }
  for (const ChildResult& end : cluster.ends()) {
    CHECK_MESSAGE(end.code == 137, end.err);
    CHECK_MESSAGE(cause_on(end).starts_with("fleetrun: rank 3 was killed by SIGKILL (9)"), end.err);
  }
  CHECK(cluster.nothing_left());
}

TEST_CASE("a training whose rank is killed once starts again on all nodes, from its checkpoint") {
  Cluster cluster(2);
  const std::string job =
      std::string(kShortJob).replace(kShortJob.find("\"max_steps\": 30"), 15, "\"max_steps\": 3000");
  for (const int node : {0, 1}) std::ofstream(cluster.folder(node) + "/job.json") << job;
  cluster.start({"--nproc_per_node=2", "--max_restart=1", "--restart_delay=0.1", "--device=cpu", "job.json"});
  REQUIRE(comes_true([&] { return contains(cluster.log(0, 0), "[Epoch 2"); }, within(60s)));
  for (const pid_t pid : cluster.left_on(1))
    if (contains(read_all("/proc/" + std::to_string(pid) + "/environ"),
                 std::string("PADDLE_TRAINER_ID=2") + '\0'))
      ::kill(pid, SIGKILL);
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.report(0)["earlier_attempts"].size() == 1);
}

TEST_CASE("hunt 113: rank 0 warns if another node has checkpoints of later steps in its own checkpoint.dir") {
  Cluster cluster(2);
  give_quickstart(cluster);
  const auto train = [&](const std::string& epochs) {
    const auto ends = cluster.run({"--nproc_per_node=1", "--device=cpu", "quickstart.json",
                                   "checkpoint.dir=checkpoints", "train.epochs=" + epochs});
    for (const ChildResult& end : ends) REQUIRE_MESSAGE(end.code == 0, end.err);
    return cluster.log(0, 0) + cluster.log(1, 0);
  };
  const std::string warning = "warning: node 1 has a checkpoint of step ";
  CHECK_FALSE(contains(train("1"), "warning: node"));
  const std::string resumed = train("2");
  CHECK_MESSAGE(contains(resumed, "resuming from "), resumed);
  CHECK_FALSE(contains(resumed, "warning: node"));
  std::filesystem::rename(cluster.folder(0) + "/output", cluster.folder(1) + "/output");
  const std::string anew = train("1");
  CHECK_MESSAGE(contains(anew, warning), anew);
  CHECK_MESSAGE(contains(anew, "node 0, which saves and resumes, has none"), anew);
  const std::string older = train("1");
  CHECK_MESSAGE(contains(older, "node 0, which saves and resumes, has one of step "), older);
}

TEST_CASE("hunt 113: of an evaluation, a node without the model tells the first node, and both end at once") {
  Cluster cluster(2);
  give_quickstart(cluster);
  for (const ChildResult& end :
       cluster.run({"--nproc_per_node=1", "--device=cpu", "quickstart.json", "train.epochs=1"}))
    REQUIRE_MESSAGE(end.code == 0, end.err);
  const auto evaluate = [&](int node) {
    std::vector<std::string> words = {"eval"};
    for (const std::string& flag : cluster.by_list(node)) words.push_back(flag);
    for (const char* const word : {"--nproc_per_node=1", "--device=cpu", "quickstart.json"})
      words.emplace_back(word);
    cluster.start_exactly(node, words);
  };
  evaluate(0);
  REQUIRE(comes_true([&] { return is_listened_at(cluster.address(0), cluster.port()); }, within(10s)));
  evaluate(1);
  for (const ChildResult& end : cluster.ends(20s)) {
    CHECK_MESSAGE(end.code == 66, end.err);
    CHECK_MESSAGE(contains(end.err, "found no model to evaluate: "), end.err);
  }
  CHECK_MESSAGE(contains(cluster.errors(0), "cannot join: found no model to evaluate: "), cluster.errors(0));
}

}  // namespace
}  // namespace fleetrun::training_over_nodes_test
