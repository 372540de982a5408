// Nodes that vanish: killed processes of fleetrun, and networks that fall silent. The other nodes end within their time and name it.
#include <regex>

#include "e2e/nodes/cluster.h"
#include "support/soak.h"

namespace fleetrun::lost_node_test {
namespace {

constexpr std::chrono::milliseconds kNoticed = 5s;   // after the fault
constexpr std::chrono::milliseconds kGrace = 1s;     // --grace of these runs
constexpr std::chrono::milliseconds kStopping = 2s;  // the rest of the end: groups are asked, then killed
constexpr std::chrono::milliseconds kKilled = 6s;    // after a killed coordinator no rank is left

// Ranks that do not end when they are asked to, and whose daemons do not either.
void start_stubborn(Cluster& cluster) {
  cluster.start({"--nproc_per_node=2", "--grace=1", FAKE_WORKER, "ignore-term", "pid",
                 cluster.shared() / "%r", "sleep", "100"});
  for (int rank = 0; rank < 2 * cluster.nodes(); ++rank) cluster.pid_in(std::to_string(rank));
}

enum class Part { front, middle };

void kill_part(const Cluster& cluster, int node, Part part) {
  const pid_t rank = cluster.pid_in(std::to_string(2 * node));
  ::kill(part == Part::front ? cluster.front(node) : parent_of(rank), SIGKILL);
}

TEST_CASE("when a process of fleetrun is killed on one node, the others end with 75 and name the node") {
  for (const Part part : {Part::middle, Part::front})
    for (const int lost : {0, 1, 2}) {
      CAPTURE(lost);
      CAPTURE(static_cast<int>(part));
      Cluster cluster(3);
      start_stubborn(cluster);
      kill_part(cluster, lost, part);
      REQUIRE(cluster.nothing_left(kKilled));
      CHECK(cluster.end_of(lost).code == 137);
      std::string cause;
      for (int node = 0; node < 3; ++node) {
        if (node == lost) continue;
        const ChildResult end = cluster.end_of(node);
        CHECK_MESSAGE(end.code == 75, end.err);
        CHECK_MESSAGE(
            contains(cause_on(end), "node " + std::to_string(lost) + " (127.0.0." + std::to_string(lost + 1)),
            end.err);
        if (lost != 0) CHECK((cause.empty() || cause == cause_on(end)));
        cause = cause_on(end);
      }
      if (lost != 0) CHECK(cluster.report(0)["exit_code"] == 75);
    }
}

TEST_CASE("when both processes of a node are killed at one moment, nothing is left on any node") {
  for (const int lost : {0, 1}) {
    CAPTURE(lost);
    Cluster cluster(2);
    start_stubborn(cluster);
    const pid_t middle = parent_of(cluster.pid_in(std::to_string(2 * lost)));
    ::kill(middle, SIGSTOP);  // so that neither has time for anything
    ::kill(cluster.front(lost), SIGSTOP);
    ::kill(middle, SIGKILL);
    ::kill(cluster.front(lost), SIGKILL);
    CHECK(cluster.nothing_left(kKilled));
    CHECK(cluster.end_of(1 - lost).code == 75);
  }
}

TEST_CASE("a node whose fleetrun stands still is lost, and ends its ranks when it goes on") {
  for (const int lost : {0, 1}) {
    CAPTURE(lost);
    Cluster cluster(2);
    start_stubborn(cluster);
    const pid_t middle = parent_of(cluster.pid_in(std::to_string(2 * lost)));
    ::kill(middle, SIGSTOP);
    const ChildResult end = cluster.end_of(1 - lost, kNoticed + kGrace + kStopping);
    CHECK(end.code == 75);
    CHECK_MESSAGE(contains(cause_on(end), "lost node " + std::to_string(lost)), end.err);
    CHECK_MESSAGE(contains(cause_on(end), "no answer for 4 s"), end.err);
    ::kill(middle, SIGCONT);
    CHECK(cluster.nothing_left(kNoticed + kGrace + kStopping));
    CHECK(cluster.end_of(lost).code == 75);
  }
}

TEST_CASE("a node that stands still for 2 s is not lost") {
  for (const int still : {0, 1}) {
    Cluster cluster(2);
    start_stubborn(cluster);
    const pid_t middle = parent_of(cluster.pid_in(std::to_string(2 * still)));
    ::kill(middle, SIGSTOP);
    const auto goes_on = std::chrono::steady_clock::now() + 2s;
    CHECK_FALSE(comes_true(
        [&] { return !is_alive(cluster.front(1 - still)); },
        std::chrono::duration_cast<std::chrono::milliseconds>(goes_on - std::chrono::steady_clock::now())));
    ::kill(middle, SIGCONT);
    CHECK_FALSE(comes_true([&] { return !is_alive(cluster.front(0)) || !is_alive(cluster.front(1)); }, 5s));
    cluster.send(0, SIGINT);
    cluster.ends();
  }
}

struct Fault {
  std::string name;
  std::function<void(const Namespaces& network, int node)> happens;
};

const std::vector<Fault> kFaults = {
    {"N1, the cable is pulled", [](const Namespaces& network, int node) { network.pull_cable(node); }},
    {"N2, both directions are swallowed",
     [](const Namespaces& network, int node) { network.drop_all(node); }},
    {"N3, one direction is swallowed",
     [](const Namespaces& network, int node) { network.drop_one_way(node); }},
};

// scripts/soak nodes repeats all faults on each side. Each takes some 6 s, so an ordinary run takes fewer.
const int kRounds = testing::soak_count(1);
const bool kAll = kRounds > 1;
const std::vector<Fault> kSomeFaults = kAll ? kFaults : std::vector{kFaults.back()};

// Both sides end in time, and each names the other one.
void check_fault(const Fault& fault, int lost, const std::function<void(Cluster&)>& begin) {
  CAPTURE(fault.name);
  CAPTURE(lost);
  const Namespaces network(2);
  Cluster cluster(2, &network);
  begin(cluster);
  fault.happens(network, lost);
  const auto start = std::chrono::steady_clock::now();
  const auto ends = cluster.ends(kNoticed + kGrace + kStopping + 20s);
  CHECK(std::chrono::steady_clock::now() - start < within(kNoticed + kGrace + kStopping));
  for (const int node : {0, 1}) {
    const ChildResult& end = ends[static_cast<std::size_t>(node)];
    const std::string other = "lost node " + std::to_string(1 - node) + " (" + cluster.address(1 - node);
    CHECK_MESSAGE(end.code == 75, end.err);
    CHECK_MESSAGE(contains(cause_on(end), other), end.err);
    CHECK(cluster.report(node)["exit_code"] == 75);
    CHECK(cluster.report(node)["cause"] == "node_lost");
  }
  CHECK(cluster.nothing_left());
}

TEST_CASE("N1 to N3: when the network between two nodes fails, both end with 75 and name the other") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < kFaults.size(); ++i)
      for (const int lost : {0, 1})
        if (kAll || std::cmp_equal(lost, i % 2)) check_fault(kFaults[i], lost, start_stubborn);
}

TEST_CASE("N1 to N3: the same in a training, whose ranks lose each other, too") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const auto begin = [](Cluster& cluster) {
    for (const int node : {0, 1}) std::ofstream(cluster.folder(node) + "/job.json") << kEndlessJob;
    cluster.start({"--nproc_per_node=2", "--grace=1", "--device=cpu", "job.json"});
    REQUIRE(comes_true([&] { return contains(cluster.log(1, 1), "[Epoch 2"); }, within(60s)));
  };
  for (int round = 0; round < kRounds; ++round)
    for (const Fault& fault : kSomeFaults) check_fault(fault, 1, begin);
}

TEST_CASE("of 3 nodes the one without a network is named by the others, and ends itself") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  for (const Fault& fault : kSomeFaults) {
    CAPTURE(fault.name);
    const Namespaces network(3);
    Cluster cluster(3, &network);
    start_stubborn(cluster);
    fault.happens(network, 2);
    const auto ends = cluster.ends(kNoticed + kGrace + kStopping);
    for (const int node : {0, 1})
      CHECK_MESSAGE(contains(cause_on(ends[static_cast<std::size_t>(node)]), "lost node 2 (10.77.0.3"),
                    ends[static_cast<std::size_t>(node)].err);
    CHECK_MESSAGE(contains(cause_on(ends[2]), "lost node 0 (10.77.0.1"), ends[2].err);
    for (const ChildResult& end : ends) CHECK_MESSAGE(end.code == 75, end.err);
  }
}

TEST_CASE(
    "hunt 36: where full packets are lost, the nodes meet, and the ranks say why their sums do not arrive") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(2);
  for (const int node : {0, 1}) network.lose_full_packets(node);
  Cluster cluster(2, &network);
  for (const int node : {0, 1}) std::ofstream(cluster.folder(node) + "/job.json") << kEndlessJob;
  const auto ends = cluster.run({"--nproc_per_node=1", "--device=cpu", "job.json"});
  for (const ChildResult& end : ends) {
    CHECK_MESSAGE(end.code == 75, end.err);
    CHECK_MESSAGE(contains(end.err, "no answer for 5 s; small packets arrive, and full ones do not"),
                  end.err);
  }
  CHECK(cluster.nothing_left());
}

TEST_CASE("5 packets of 100 are lost, and the run goes on") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(2);
  Cluster cluster(2, &network);
  cluster.start(
      {"--nproc_per_node=2", FAKE_WORKER, "pid", cluster.shared() / "%r", "await", cluster.shared() / "end"});
  for (const char* rank : {"0", "1", "2", "3"}) cluster.pid_in(rank);
  network.lose(1, 5);
  CHECK_FALSE(comes_true([&] { return !is_alive(cluster.front(0)) || !is_alive(cluster.front(1)); }, 10s));
  cluster.shared().write("end", "");
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
}

}  // namespace
}  // namespace fleetrun::lost_node_test
