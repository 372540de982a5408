// fleetrun doctor on nodes that are network namespaces of this machine: one fault at a time, and none.
#include "e2e/faults/test_cgroup.h"
#include "e2e/nodes/cluster.h"
#include "support/soak.h"

namespace fleetrun::doctor_test {
namespace {

constexpr int kNodes = 4;
constexpr int kOdd = 2;  // the node with the fault

// The doctor's answer on the first node.
struct Answer {
  int code = 0;
  nlohmann::json whole;
  std::string all;  // for the message of a failed check

  std::vector<std::string> topics() const {
    std::vector<std::string> found;
    for (const auto& finding : whole["findings"])
      if (finding["serious"].get<bool>()) found.push_back(finding["topic"].get<std::string>());
    return found;
  }
};

Answer examine(Cluster& cluster, const Words& words = {}) {
  Words all = {"doctor", "--json"};
  for (int node = 0; node < cluster.nodes(); ++node) {
    Words command = all;
    for (const std::string& word : cluster.by_list(node)) command.push_back(word);
    command.insert(command.end(), words.begin(), words.end());
    cluster.start_exactly(node, command);
  }
  const auto start = std::chrono::steady_clock::now();
  const std::vector<ChildResult> ends = cluster.ends();
  CHECK(std::chrono::steady_clock::now() - start < within(10s));
  Answer answer = {.code = ends[0].code, .whole = {}, .all = ends[0].out + ends[0].err};
  REQUIRE_MESSAGE(!ends[0].out.empty(), answer.all);
  answer.whole = nlohmann::json::parse(ends[0].out);
  for (const ChildResult& end : ends) CHECK_MESSAGE(end.code == answer.code, end.err);
  return answer;
}

// The fault and nothing else is found, and its node is named.
void check_found(const Answer& answer, const std::string& topic, const std::string& text) {
  CHECK_MESSAGE(answer.code == 75, answer.all);
  REQUIRE_MESSAGE(answer.topics() == std::vector<std::string>{topic}, answer.all);
  const auto& finding = answer.whole["findings"][0];
  CHECK(finding["nodes"] == nlohmann::json{kOdd});
  CHECK_MESSAGE(contains(finding["text"].get<std::string>(), text), answer.all);
}

// Tests that run at the same time may slow down all nodes so much that the doctor says only that.
bool says_only_that_machine_is_busy(const Answer& answer) {
  return answer.code == 0 && contains(answer.whole["findings"].dump(), "other programs use its CPUs");
}

TEST_CASE("the doctor finds nothing on healthy nodes") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const Namespaces network(kNodes);
  for (int run = 0; run < testing::soak_count(1); ++run) {
    CAPTURE(run);
    Cluster cluster(kNodes, &network);
    const Answer answer = examine(cluster);
    CHECK_MESSAGE(answer.code == 0, answer.all);
    CHECK_MESSAGE(answer.topics().empty(), answer.all);
    CHECK(answer.whole["links"].size() == kNodes * (kNodes - 1));
    CHECK(cluster.nothing_left());
  }
}

TEST_CASE("the doctor names a slow node: a CPU quota of 50 %") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const auto group = TestCgroup::make("cpu");
  if (!group || !(group->version() == 1 ? group->set("cpu.cfs_quota_us", "50000")
                                        : group->set("cpu.max", "50000 100000")))
    LEAVE_OUT("this process may not make a cgroup with a CPU quota");
  const Namespaces network(kNodes);
  const auto examine_with_quota = [&] {
    Cluster cluster(kNodes, &network);
    cluster.start_after(kOdd, {"/bin/sh", "-c", group->enter() + "; exec \"$@\"", "sh"});
    return examine(cluster);
  };
  Answer answer = examine_with_quota();
  for (int again = 0; again < 10 && says_only_that_machine_is_busy(answer); ++again)
    answer = examine_with_quota();
  if (says_only_that_machine_is_busy(answer))
    LEAVE_OUT(
        "other programs use the CPUs of this machine all the time, so no node is slower than the others");
  check_found(answer, "cpu", "its CPU is slow");
}

TEST_CASE("the doctor names a node that nobody can connect to, though it can connect to all") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const Namespaces network(kNodes);
  network.refuse_connections(kOdd);
  Cluster cluster(kNodes, &network);
  check_found(examine(cluster), "firewall", "nodes 0, 1, 3 cannot connect to it");
}

TEST_CASE("the doctor names a node to which 5 % of the packets are lost") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const Namespaces network(kNodes);
  network.lose(kOdd, 5);
  Cluster cluster(kNodes, &network);
  check_found(examine(cluster), "loss", "packets are lost");
}

TEST_CASE(
    "hunt 36: the doctor hears of nodes whose full packets are lost on the way to the first node, too") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const Namespaces network(3);
  for (int node = 0; node < 3; ++node) network.lose_full_packets(node);
  Cluster cluster(3, &network);
  const Answer answer = examine(cluster);
  REQUIRE_MESSAGE(!answer.topics().empty(), answer.all);
  for (const auto& finding : answer.whole["findings"]) {
    if (!finding["serious"].get<bool>()) continue;  // other tests may use the CPUs
    CHECK_MESSAGE(finding["topic"] == "transfer", answer.all);
    CHECK_MESSAGE(contains(finding["text"].get<std::string>(), "full ones do not"), answer.all);
  }
}

TEST_CASE("hunt 38: the doctor of a job looks at the ports that its ranks choose") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const Namespaces network(2);
  for (const int node : {0, 1}) network.close_chosen_ports(node);
  for (const bool job : {true, false}) {
    CAPTURE(job);
    Cluster cluster(2, &network);
    for (const int node : {0, 1}) std::ofstream(cluster.folder(node) + "/job.json") << kEndlessJob;
    const Answer answer = examine(cluster, job ? Words{"--device=cpu", "job.json"} : Words{"/bin/true"});
    CHECK_MESSAGE(answer.topics() == std::vector<std::string>(job ? 2 : 0, "firewall"), answer.all);
  }
}

TEST_CASE("the doctor names a node with an MTU of 576") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const Namespaces network(kNodes);
  network.set_mtu(kOdd, 576);
  Cluster cluster(kNodes, &network);
  check_found(examine(cluster), "mtu", "its packets may have 576 bytes");
}

TEST_CASE("the doctor names a node with another fleetrun") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const Namespaces network(kNodes);
  Cluster cluster(kNodes, &network);
  const std::string other = cluster.shared() / "fleetrun";
  std::filesystem::copy_file(FLEETRUN_BINARY, other);
  std::ofstream(other, std::ios::app) << "other";
  cluster.use(kOdd, other);
  check_found(examine(cluster), "fleetrun", "the hash of the program fleetrun");
}

TEST_CASE("the doctor names a node whose clock is 3 s ahead") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  if (testing::kSlowdown > 1) LEAVE_OUT("the address sanitizer allows no library before it");
  const Namespaces network(kNodes);
  Cluster cluster(kNodes, &network);
  cluster.shared().write("moved", "3");
  cluster.set(kOdd, "LD_PRELOAD", MOVED_CLOCK);
  cluster.set(kOdd, "FLEETRUN_TEST_MOVED", cluster.shared() / "moved");
  check_found(examine(cluster), "clock", "s ahead of that of the other nodes");
}

TEST_CASE("the doctor names a node whose disk is full") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  if (!can_mount()) LEAVE_OUT("a full disk needs mount namespaces");
  const Namespaces network(kNodes);
  Cluster cluster(kNodes, &network);
  const std::string out = cluster.shared() / "out";
  std::filesystem::create_directory(out);
  cluster.start_after(kOdd, {"/usr/bin/unshare", "-m", "/bin/sh", "-c",
                             "mount -t tmpfs -o size=1m tmpfs \"$0\" && exec \"$@\"", out});
  check_found(examine(cluster, {"--log_dir=" + out}), "disk", "MiB free, wanted 256 MiB");
}

TEST_CASE("the doctor names a node on which another program has a port of the ranks") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const Namespaces network(kNodes);
  Cluster cluster(kNodes, &network);
  UniqueFd taken;
  network.run_in(kOdd, [&] { taken = listen_at("0.0.0.0", 6171); });
  check_found(examine(cluster, {"--start_port=6170", "--nproc_per_node=2"}), "ports",
              "port 6171 is taken by");
}

TEST_CASE("hunt 80: the doctor names a node that is stopped while the CPUs are measured") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const Namespaces network(3);
  for (const char* how : {"doctor", "--preflight"}) {
    CAPTURE(how);
    Cluster cluster(3, &network);
    for (const int node : {0, 1, 2}) {
      Words words = {how};
      for (const std::string& word : cluster.by_list(node)) words.push_back(word);
      words.insert(words.end(), {"-n1", "/bin/true"});
      cluster.start_exactly(node, words);
    }
    REQUIRE(cluster.says(0, "measuring CPUs, one node at a time"));
    cluster.send(kOdd, SIGTERM);
    const auto start = std::chrono::steady_clock::now();
    const std::vector<ChildResult> ends = cluster.ends();
    CHECK(std::chrono::steady_clock::now() - start < within(15s));
    for (const int node : {0, 1}) {
      const std::string all =
          ends[static_cast<std::size_t>(node)].out + ends[static_cast<std::size_t>(node)].err;
      CHECK_MESSAGE(ends[static_cast<std::size_t>(node)].code == 75, all);
      CHECK_MESSAGE(contains(all, "it joined, and was stopped or lost during the examination"), all);
      CHECK_FALSE_MESSAGE(contains(all, "transfers"), all);
    }
  }
}

TEST_CASE("the doctor examines the nodes that came, and names the one that did not") {
  if (const auto what = Namespaces::missing()) LEAVE_OUT(*what);
  const Namespaces network(3);
  Cluster cluster(3, &network);
  for (const int node : {0, 1}) {
    Words words = {"doctor", "--join_timeout=10"};
    for (const std::string& word : cluster.by_list(node)) words.push_back(word);
    cluster.start_exactly(node, words);
  }
  const ChildResult first = cluster.end_of(0), second = cluster.end_of(1);
  CHECK(first.code == 75);
  CHECK_MESSAGE(contains(first.out, "* node 2 (10.77.0.3): it did not join within 10 s (--join_timeout)"),
                (first.out + first.err));
  CHECK(second.code == 75);
  CHECK_MESSAGE(contains(second.err, "node 2 (10.77.0.3): it did not join"), second.err);
  std::istringstream lines(first.out);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 80, line);
}

}  // namespace
}  // namespace fleetrun::doctor_test
