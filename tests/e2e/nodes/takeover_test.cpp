// Elastic runs that lose their first node: another node takes over.
#include "e2e/nodes/cluster.h"

namespace fleetrun::takeover_test {
namespace {

constexpr int kNodes = 4;
constexpr auto kPatience = 240s;  // for a training beside other work

const char* const kJob = R"({
  "model": {"name": "mlp", "hidden": [64]},
  "data": {"train": {"format": "synthetic", "samples": 960, "shape": [1, 16, 16], "classes": 4}, "batch_size": 16, "uneven": "drop"},
  "optimizer": {"name": "momentum", "learning_rate": 0.001},
  "train": {"epochs": 200, "log_every": 100000, "threads": 1},
  "checkpoint": {"dir": "checkpoints", "every_steps": 500}
})";

// All ranks know of a complete checkpoint after the step that follows.
bool goes_on_after_checkpoint(const std::string& log) {
  const auto checkpoint = log.find("\ncheckpoint: ");
  return checkpoint != std::string::npos && log.find("\n[Epoch ", checkpoint) != std::string::npos;
}

struct Wish {
  bool shared = true;  // all nodes write to one folder, as on a shared disk; false: each to its own
  int epochs = 200;
  Words settings = {};  // more of the job
};

class Training {
 public:
  explicit Training(const Namespaces& network) : Training(network, {}) {}
  Training(const Namespaces& network, const Wish& chosen)
      : wish(chosen),
        cluster(kNodes, &network),
        output(wish.shared ? cluster.shared() / "output" : "output"),
        checkpoints((wish.shared ? output : cluster.folder(0) + "/output") + "/checkpoints") {
    for (int node = 0; node < kNodes; ++node) {
      std::ofstream(cluster.folder(node) + "/job.json") << kJob;
      start(node, "log");
    }
  }
  void start(int node, const std::string& logs) {
    Words words = {"--nnodes=2:4", "--nproc_per_node=1", "--device=cpu", "--grace=2", "--join_timeout=20"};
    words.insert(words.end(), {"--log_dir=" + logs, "job.json", "output.dir=" + output,
                               "train.epochs=" + std::to_string(wish.epochs)});
    words.insert(words.end(), wish.settings.begin(), wish.settings.end());
    cluster.start(node, words);
  }
  std::string all_errors() const {
    std::string text;
    for (int node = 0; node < kNodes; ++node)
      text += "node " + std::to_string(node) + " says:\n" + cluster.errors(node);
    return text;
  }
  void wait_for_checkpoint() {
    REQUIRE_MESSAGE(
        comes_true([&] { return goes_on_after_checkpoint(cluster.log(0, 0)); }, within(Cluster::kLimit)),
        all_errors() << cluster.log(0, 0));
  }
  void check_ends(const std::vector<int>& nodes) {
    for (const int node : nodes) {
      const ChildResult end = cluster.end_of(node, kPatience);
      CHECK_MESSAGE(end.code == 0, "node " << node << ":\n" << end.err);
    }
  }

  const Wish wish;
  Cluster cluster;
  const std::string output, checkpoints;
};

TEST_CASE(
    "when all processes of the first node are killed, the others go on from the last checkpoint, and end with 0") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(kNodes);
  Training training(network);
  Cluster& cluster = training.cluster;
  training.wait_for_checkpoint();
  cluster.kill(0);
  training.check_ends({1, 2, 3});
  CHECK(contains(cluster.errors(2),
                 "fleetrun: the run goes on with 3 nodes and 3 ranks; this is node 1 with rank 1\n"));
  CHECK_MESSAGE(contains(cluster.log(1, 0), "resuming from " + training.checkpoints), cluster.log(1, 0));
  CHECK(contains(cluster.read(1, "log/history.csv"), "\n1,0,"));  // of the lost node
  const auto report = cluster.report(1);
  CHECK(report["cause"] == "finished");
  CHECK(report["ranks"].size() == 3);
  CHECK(report["train"]["world_size"] == 3);
  CHECK(report["train"]["epochs"] == 200);
  REQUIRE(report["stand_stills"].size() == 1);
  const auto stand_still = report["stand_stills"][0];
  CHECK(contains(stand_still["taken_over_by"], "10.77.0.2"));
  CHECK(contains(stand_still["why"], "lost node 0 (10.77.0.1), which coordinates the run"));
  CHECK(stand_still["detection_s"] < 1.5);  // the kernel of the lost node closes its connections
  CHECK(cluster.nothing_left());
}

TEST_CASE(
    "a first node without a network ends its own ranks; the others go on, and it comes back as a member") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(kNodes);
  Training training(network, {.epochs = 1000000});
  Cluster& cluster = training.cluster;
  training.wait_for_checkpoint();
  network.pull_cable(0);
  const ChildResult end = cluster.end_of(0, 20s);
  CHECK(end.code == 75);
  CHECK_MESSAGE(contains(end.err,
                         "only 1 of the 4 nodes of attempt 0 is here, and at least half of them must be, "
                         "because the others may go on"),
                end.err);
  CHECK(cluster.left_on(0).empty());
  REQUIRE(cluster.says(2, "the run goes on with 3 nodes"));
  network.plug_cable(0);
  training.start(0, "again");
  REQUIRE(cluster.says(1, "the run goes on with 4 nodes and 4 ranks; this is node 0 with rank 0"));
  REQUIRE(comes_true([&] { return contains(cluster.log(1, 0), "resuming from"); }, within(Cluster::kLimit)));
  cluster.send(0, SIGTERM);
  for (int node = 0; node < kNodes; ++node) CHECK(cluster.end_of(node).code == 143);
  CHECK(contains(cluster.report(1)["stand_stills"][0]["taken_over_by"], "10.77.0.2"));
  CHECK(nlohmann::json::parse(cluster.read(0, "again/report.json"))["ranks"][0]["rank"] == 1);
  CHECK(cluster.nothing_left());
}

TEST_CASE(
    "hunt 30: a node that took over and is killed in its turn comes back, as the first one did before") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(kNodes);
  Training training(network, {.epochs = 1000000});
  Cluster& cluster = training.cluster;
  training.wait_for_checkpoint();
  cluster.kill(0);
  REQUIRE_MESSAGE(cluster.says(1, "the run goes on with 3 nodes", 30s), training.all_errors());
  training.start(0, "log");
  REQUIRE_MESSAGE(cluster.says(1, "the run goes on with 4 nodes", 30s), training.all_errors());
  REQUIRE(comes_true(
      [&] { return contains(cluster.read(1, "log/attempt-1/train.json"), "run_id"); },  // rank 0 was here
      within(30s)));
  cluster.kill(1);
  REQUIRE_MESSAGE(cluster.says(0, "the run goes on with 3 nodes", 30s), training.all_errors());
  std::filesystem::remove(cluster.folder(1) + "/err");
  training.start(1, "log");
  CHECK_MESSAGE(cluster.says(1, "joined a run that has its 3 nodes", 30s), training.all_errors());
  CHECK_MESSAGE(comes_true([&] { return contains(cluster.log(1, 0), "joined 4 ranks"); }, within(30s)),
                training.all_errors());
  cluster.send(2, SIGTERM);
  for (int node = 0; node < kNodes; ++node) {
    const ChildResult end = cluster.end_of(node);
    CHECK_MESSAGE(end.code == 143, "node " << node << ":\n" << end.err);
  }
}

TEST_CASE(
    "when two of four nodes lose the other two, among them the first, they end their ranks, and the others go on") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(kNodes);
  Training training(network);
  Cluster& cluster = training.cluster;
  training.wait_for_checkpoint();
  for (const int node : {2, 3}) network.pull_cable(node);
  for (const int node : {2, 3}) {
    const ChildResult end = cluster.end_of(node, 25s);
    CHECK(end.code == 75);
    CHECK_MESSAGE(contains(end.err, "lost node 0 (10.77.0.1), which coordinates the run"), end.err);
  }
  training.check_ends({0, 1});
  CHECK(cluster.report(0)["train"]["epochs"] == 200);
  CHECK(cluster.nothing_left());
}

TEST_CASE("a node that takes over and does not see the checkpoints ends the run and says so") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(kNodes);
  // Only the first checkpoint is there when the node is lost.
  const Words rarely = {"checkpoint.every_epochs=0", "checkpoint.every_steps=3000"};
  Training training(network, {.shared = false, .epochs = 1000000, .settings = rarely});
  Cluster& cluster = training.cluster;
  training.wait_for_checkpoint();
  cluster.kill(0);
  for (const int node : {1, 2, 3}) CHECK(cluster.end_of(node).code == 66);
  CHECK_MESSAGE(contains(cluster.errors(3),
                         "rank 0 is on another node now, and this node does not see the checkpoints"),
                cluster.errors(3));
  CHECK(cluster.nothing_left());
}

// As `cp -r` to the disk of the node makes it, or a view of a shared disk that is late.
void copy_checkpoints(const Cluster& cluster, int from, int to) {
  run_child({"/bin/cp", "-r", cluster.folder(from) + "/output", cluster.folder(to)});
}

TEST_CASE(
    "hunt 33: a node that takes over and has only an old copy of the checkpoints ends the run and says so") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(kNodes);
  const Words rarely = {"checkpoint.every_epochs=0", "checkpoint.every_steps=3000", "checkpoint.keep=100000"};
  Training training(network, {.shared = false, .epochs = 1000000, .settings = rarely});
  Cluster& cluster = training.cluster;
  training.wait_for_checkpoint();
  for (const int node : {1, 2, 3}) copy_checkpoints(cluster, 0, node);
  const std::size_t copied = cluster.log(0, 0).size();
  REQUIRE(comes_true([&] { return goes_on_after_checkpoint(cluster.log(0, 0).substr(copied)); },
                     within(Cluster::kLimit)));
  cluster.kill(0);
  for (const int node : {1, 2, 3}) CHECK(cluster.end_of(node).code == 66);
  CHECK_MESSAGE(contains(cluster.errors(3),
                         "this node does not see the newest checkpoint of the run: the newest here is "),
                cluster.errors(3));
  CHECK(cluster.nothing_left());
}

TEST_CASE(
    "hunt 122: a node that cannot connect to its own meeting port leaves the takeover to the next one") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(3);
  Cluster cluster(3, &network);
  network.close_port(1, cluster.port());
  cluster.start({"--nnodes=2:3", FAKE_WORKER, "await", "../go"});
  for (const int node : {0, 1, 2}) REQUIRE(cluster.says(node, "log/"));
  cluster.kill(0);
  CHECK(cluster.says(1, "this node cannot take over: it cannot connect to 10.77.0.2:" +
                            std::to_string(cluster.port()) + ", where it listens itself"));
  REQUIRE(cluster.says(2, "the run goes on with 2 nodes"));
  cluster.shared().write("go", "");
  for (const int node : {1, 2}) CHECK(cluster.end_of(node).code == 0);
}

TEST_CASE(
    "hunt 122: if no other node can take over either, all end with the loss, and a signal is heard meanwhile") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(3);
  Cluster cluster(3, &network);
  for (const int node : {1, 2}) network.close_port(node, cluster.port());
  cluster.start({"--nnodes=2:3", "--", "sh", "-c",
                 "echo $$ > ../new.$RANK && mv ../new.$RANK ../rank.$RANK; exec sleep 100"});
  const pid_t rank = cluster.pid_in("rank.1");
  for (const int node : {0, 2}) cluster.pid_in("rank." + std::to_string(node));
  cluster.kill(0);
  REQUIRE(cluster.says(1, "this node cannot take over"));
  REQUIRE(gone(rank, 5s));
  cluster.send(1, SIGTERM);
  CHECK(cluster.says(1, "stopped by SIGTERM (15): the other nodes hear of it if they meet this node"));
  for (const int node : {1, 2}) {
    const ChildResult end = cluster.end_of(node);
    CHECK(end.code == 75);
    CHECK_MESSAGE(contains(end.err, "no other node of the run took over"), end.err);
  }
}

TEST_CASE("with --restart_window, a restart that is older does not keep another node from taking over") {
  Cluster cluster(3);
  const std::string ranks = "'" + cluster.shared().path() + "'/$TORCHELASTIC_RESTART_COUNT.$RANK";
  // A rank writes its file when the restart before it is older than the window.
  cluster.start({"--nnodes=2:3", "--nproc_per_node=1", "--max_restart=1", "--restart_window=1",
                 "--restart_delay=0", "--grace=2", "--", "sh", "-c",
                 "[ $TORCHELASTIC_RESTART_COUNT.$RANK = 0.1 ] && exit 3; sleep 1.5; : > " + ranks +
                     "; exec sleep 100"});
  for (const char* rank : {"1.0", "1.1", "1.2"})
    REQUIRE(comes_true([&] { return cluster.shared().has(rank); }, within(Cluster::kLimit)));
  cluster.kill(0);
  CHECK_MESSAGE(cluster.says(2, "the run goes on with 2 nodes and 2 ranks"), cluster.errors(2));
  cluster.send(1, SIGTERM);
  for (const int node : {1, 2}) CHECK(cluster.end_of(node).code == 143);
  CHECK(cluster.nothing_left());
}

// Three nodes that meet at the first one. Which of the others takes over depends on the order in which they came.
class MeetingByMaster {
 public:
  static constexpr int kNodes = 3;

  explicit MeetingByMaster(const Namespaces& network, const Words& more = {}) : cluster(kNodes, &network) {
    for (int node = 0; node < kNodes; ++node) start(node, 0, "log", more);
  }
  void start(int node, int master, const std::string& logs, const Words& more = {}) {
    Words flags = {
        "--nnodes=1:3",       "--master=" + cluster.address(master) + ":" + std::to_string(cluster.port()),
        "--nproc_per_node=1", "--grace=2",
        "--join_timeout=20",  "--elastic_timeout=3",
        "--log_dir=" + logs};
    flags.insert(flags.end(), more.begin(), more.end());
    for (const char* word : {"--", "sh", "-c"}) flags.emplace_back(word);
    flags.push_back(": > '" + cluster.shared().path() + "'/$WORLD_SIZE.$RANK; exec sleep 100");
    cluster.start_exactly(node, flags);
  }
  // The one that has taken over from node 0.
  int first_node() const { return contains(cluster.errors(1), "this node takes over") ? 1 : 2; }
  bool has_three_ranks() const {
    const auto has = [&](const char* rank) { return cluster.shared().has(rank); };
    return comes_true([&] { return has("3.0") && has("3.1") && has("3.2"); }, within(Cluster::kLimit));
  }
  void lose_first_node() {
    REQUIRE_MESSAGE(has_three_ranks(), cluster.errors(0));
    cluster.kill(0);
    REQUIRE_MESSAGE(go_on_without_first(), cluster.errors(1) << cluster.errors(2));
  }
  bool go_on_without_first() {
    return cluster.says(1, "the run goes on with 2 nodes") && cluster.says(2, "the run goes on with 2 nodes");
  }

  Cluster cluster;
};

TEST_CASE(
    "with --master, a node that comes back finds the run that another node has taken over in its log folder") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(3);
  MeetingByMaster meeting(network);
  Cluster& cluster = meeting.cluster;
  meeting.lose_first_node();
  meeting.start(0, 0, "log");
  CHECK_MESSAGE(cluster.says(1, "the run goes on with 3 nodes", 20s),
                cluster.errors(0) << cluster.errors(1) << cluster.errors(2));
  cluster.send(1, SIGTERM);
  for (int node = 0; node < 3; ++node) CHECK(cluster.end_of(node).code == 143);
}

TEST_CASE("hunt 18: with --preflight, a node finds the run that another node has taken over") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(3);
  MeetingByMaster meeting(network, {"--preflight"});
  Cluster& cluster = meeting.cluster;
  meeting.lose_first_node();
  meeting.start(0, 0, "log", {"--preflight"});
  CHECK_MESSAGE(cluster.says(1, "the run goes on with 3 nodes", 30s),
                cluster.errors(0) << cluster.errors(1) << cluster.errors(2));
  CHECK(contains(cluster.errors(0), "the run goes on already, so only this host is examined"));
  cluster.send(1, SIGTERM);
  for (int node = 0; node < 3; ++node) CHECK(cluster.end_of(node).code == 143);
}

TEST_CASE("a node that takes over says with which --master other nodes find it, and they do") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(3);
  MeetingByMaster meeting(network);
  Cluster& cluster = meeting.cluster;
  meeting.lose_first_node();
  const int first = meeting.first_node();
  CHECK(cluster.says(first, "nodes that come from now on need --master=" + cluster.address(first) + ":" +
                                std::to_string(cluster.port())));
  meeting.start(0, first, "new");
  CHECK_MESSAGE(cluster.says(first, "the run goes on with 3 nodes", 20s),
                cluster.errors(0) << cluster.errors(1) << cluster.errors(2));
  cluster.send(1, SIGTERM);
  for (int node = 0; node < 3; ++node) CHECK(cluster.end_of(node).code == 143);
}

TEST_CASE(
    "hunt 33: a first node that came back and was stopped before it got ranks finds the run once more") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(3);
  MeetingByMaster meeting(network);
  Cluster& cluster = meeting.cluster;
  meeting.lose_first_node();
  meeting.start(0, 0, "log");
  REQUIRE_MESSAGE(cluster.says(0, "joined a run"), cluster.errors(0));
  cluster.send(0, SIGINT);
  CHECK(cluster.end_of(0).code == 130);
  meeting.start(0, 0, "log");
  CHECK_MESSAGE(cluster.says(1, "the run goes on with 3 nodes", 20s),
                cluster.errors(0) << cluster.errors(1) << cluster.errors(2));
  cluster.send(1, SIGTERM);
  for (int node = 0; node < 3; ++node) CHECK(cluster.end_of(node).code == 143);
}

TEST_CASE(
    "hunt 16: with --rejoin_at, a first node without its log folder finds the run that goes on without it") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(3);
  MeetingByMaster meeting(network);
  Cluster& cluster = meeting.cluster;
  meeting.lose_first_node();
  std::string hosts = "no-such-host.invalid";
  for (int node = 0; node < MeetingByMaster::kNodes; ++node) hosts += "," + cluster.address(node);
  meeting.start(0, 0, "new", {"--node_rank=0", "--rejoin_at=" + hosts});
  CHECK_MESSAGE(cluster.says(1, "the run goes on with 3 nodes", 20s),
                cluster.errors(0) << cluster.errors(1) << cluster.errors(2));
  cluster.send(1, SIGTERM);
  for (int node = 0; node < 3; ++node) CHECK(cluster.end_of(node).code == 143);
}

TEST_CASE(
    "when only the front process of the first node is killed, its ranks end and the other nodes go on") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(3);
  MeetingByMaster meeting(network);
  Cluster& cluster = meeting.cluster;
  REQUIRE_MESSAGE(meeting.has_three_ranks(), cluster.errors(0));
  ::kill(cluster.front(0), SIGKILL);
  CHECK_MESSAGE(meeting.go_on_without_first(), cluster.errors(1) << cluster.errors(2));
  CHECK(cluster.says(0, "this node leaves the run to the other nodes"));
  CHECK(comes_true([&] { return cluster.left_on(0).empty(); }, within(20s)));
  CHECK(cluster.report(0)["cause"] == "front_lost");
  cluster.send(1, SIGTERM);
  for (const int node : {1, 2}) CHECK(cluster.end_of(node).code == 143);
}

TEST_CASE(
    "hunt 107: nobody takes over a run that was stopped, also if its first node is lost while the ranks save") {
  Cluster cluster(3);
  const std::string script =
      "trap 'echo saves; until [ -e " + (cluster.shared() / "go") +
      " ]; do sleep 0.05; done; exit 130' INT TERM; echo up; while :; do sleep 0.05; done";
  cluster.start(
      {"--nnodes=2:3", "--max_restart=4", "--grace=60", "--nproc_per_node=1", "--", "/bin/sh", "-c", script});
  const auto all_print = [&](const std::string& line) {
    for (const int node : {0, 1, 2})
      REQUIRE(comes_true([&] { return contains(cluster.log(node, 0), line); }, within(30s)));
  };
  all_print("up\n");
  cluster.send(0, SIGINT);
  all_print("saves\n");
  cluster.kill(0);
  cluster.shared().write("go", "");
  for (const int node : {1, 2}) {
    const ChildResult end = cluster.end_of(node);
    CHECK_MESSAGE(end.code == 130, end.err);
    CHECK_FALSE(contains(end.err, "takes over"));
    CHECK(contains(end.err,
                   "fleetrun: stopped by SIGINT (2) on node 0 (127.0.0.1)\nfleetrun: then lost node 0"));
    CHECK(cluster.end_in_report(node) == "stopped by 2");
  }
}

TEST_CASE(
    "hunt 151: a node that somebody stops before it notices the loss of the first one tells the others") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  for (const int stopped : {1, 3}) {  // 1 takes over
    const Namespaces network(kNodes);
    Cluster cluster(kNodes, &network);
    cluster.start({"--nnodes=2:4", "--nproc_per_node=1", "--", "sh", "-c",
                   "echo $$ > ../new.$RANK && mv ../new.$RANK ../rank.$RANK; exec sleep 100"});
    for (int node = 0; node < kNodes; ++node) cluster.pid_in("rank." + std::to_string(node));
    network.pull_cable(0);
    cluster.send(stopped, SIGINT);
    CHECK(cluster.says(stopped, "no answer for 4 s; this node looks for the others to end the run\n"));
    for (const int node : {1, 2, 3}) {
      CAPTURE(node);
      const ChildResult end = cluster.end_of(node);
      CHECK_MESSAGE(end.code == 130, end.err);
      CHECK(cluster.end_in_report(node) == "stopped by 2");
    }
    CHECK(cluster.end_of(0, 20s).code == 75);
  }
}

TEST_CASE(
    "hunt 154: a stopped node that finds no other node ends at another Ctrl-C, and says that nobody heard of it") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(kNodes);
  Cluster cluster(kNodes, &network);
  cluster.start({"--nnodes=2:4", "--nproc_per_node=1", "--", "sh", "-c",
                 "echo $$ > ../new.$RANK && mv ../new.$RANK ../rank.$RANK; exec sleep 100"});
  for (int node = 0; node < kNodes; ++node) cluster.pid_in("rank." + std::to_string(node));
  network.pull_cable(3);
  cluster.send(3, SIGINT);
  REQUIRE(cluster.says(3, "this node looks for the others to end the run\n"));
  cluster.send(3, SIGINT);
  const ChildResult end = cluster.end_of(3, 4s);
  CHECK(end.code == 130);
  CHECK_MESSAGE(contains(end.err, "no other node of the run took over"), end.err);
  cluster.send(0, SIGTERM);
  for (const int node : {0, 1, 2}) CHECK(cluster.end_of(node).code == 143);
}

}  // namespace
}  // namespace fleetrun::takeover_test
