// --preflight: the doctor examines the nodes before they start a run. And a doctor beside a run.
#include "e2e/nodes/cluster.h"

namespace fleetrun::preflight_test {
namespace {

const std::string kNothing = "fleetrun: doctor: nothing wrong was found\n";

TEST_CASE("--preflight examines one host, and then starts the ranks") {
  const Launch launch;
  const ChildResult result = launch.run({"--preflight", "--device=cpu", "-n1"}, {"print", "started"});
  CHECK(result.code == 0);
  CHECK_MESSAGE(contains(result.err, kNothing), result.err);
  CHECK(contains(launch.folder.read("log/workerlog.0"), "started"));
}

TEST_CASE("--preflight examines two nodes, and then they meet again and start the ranks") {
  Cluster cluster(2);
  const auto ends = cluster.run({"--preflight", "--device=cpu", "-n1", FAKE_WORKER, "print", "started"});
  for (const ChildResult& end : ends) {
    CHECK_MESSAGE(end.code == 0, end.err);
    CHECK_MESSAGE(contains(end.err, kNothing), end.err);
  }
  CHECK(contains(cluster.log(1, 0), "started"));
}

TEST_CASE("when --preflight finds something, no node starts a rank, and each says why") {
  Cluster cluster(2);
  const std::string other = cluster.shared() / "fleetrun";
  std::filesystem::copy_file(FLEETRUN_BINARY, other);
  std::ofstream(other, std::ios::app) << "other";
  cluster.use(1, other);
  for (const ChildResult& end :
       cluster.run({"--preflight", "--device=cpu", "-n1", FAKE_WORKER, "print", "started"})) {
    CHECK_MESSAGE(end.code == 75, end.err);
    CHECK_MESSAGE(contains(end.err, "fleetrun: doctor: node 1 (127.0.0.2, "), end.err);
  }
  CHECK_FALSE(std::filesystem::exists(cluster.folder(0) + "/log"));
}

const Words kWaitsForGo = {"--", "/bin/sh", "-c", "while [ ! -e ../go ]; do sleep 0.05; done"};

void start(Cluster& cluster, int node, const Words& flags) {
  Words words = {"--preflight", "--device=cpu", "-n1"};
  for (const Words& more : {flags, kWaitsForGo}) words.insert(words.end(), more.begin(), more.end());
  cluster.start(node, words);
}

void finish(Cluster& cluster) {
  cluster.shared().write("go", "");
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
}

bool has_started(const Cluster& cluster, int node) {
  return comes_true([&] { return std::filesystem::exists(cluster.folder(node) + "/log/workerlog.0"); },
                    within(Cluster::kLimit));
}

TEST_CASE("--preflight examines a spare node, too, and then one node stands by") {
  Cluster cluster(3);
  for (const int node : {0, 1, 2})
    start(cluster, node, {"--nnodes=1:3", "--spares=1", "--elastic_timeout=20"});
  REQUIRE(comes_true(
      [&] { return contains(cluster.errors(1) + cluster.errors(2), "joined a run that has its 2 nodes"); },
      within(Cluster::kLimit)));
  for (const int node : {0, 1, 2})
    CHECK_MESSAGE(contains(cluster.errors(node), kNothing), cluster.errors(node));
  finish(cluster);
}

TEST_CASE("--preflight of an elastic run needs MIN nodes, and a node that comes later examines itself") {
  Cluster cluster(2);
  const Words flags = {"--nnodes=1:2", "--elastic_timeout=1"};
  start(cluster, 0, flags);
  REQUIRE(cluster.says(0, kNothing));
  CHECK(
      contains(cluster.errors(0),
               "fleetrun: doctor: note: node 1 (127.0.0.2): it did not join within 1 s (--elastic_timeout)"));
  REQUIRE(has_started(cluster, 0));
  start(cluster, 1, flags);
  REQUIRE(has_started(cluster, 1));
  finish(cluster);
  CHECK(contains(cluster.errors(1),
                 "fleetrun: doctor: the run goes on already, so only this host is examined"));
}

TEST_CASE("hunt 74: a node that waits stays when a doctor runs on the first node, and then begins") {
  Cluster cluster(2);
  const Words run = {FAKE_WORKER, "print", "started"};
  cluster.start(1, run);
  Words doctor = {"doctor", "--join_timeout=3"};
  for (const std::string& word : cluster.by_list(0)) doctor.push_back(word);
  cluster.start_exactly(0, doctor);
  CHECK(cluster.says(1, "runs fleetrun doctor, and "));
  CHECK(cluster.end_of(0).code == 75);  // one node is missing
  cluster.start(0, run);
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.log(1, 0) == "started\n");
}

}  // namespace
}  // namespace fleetrun::preflight_test
