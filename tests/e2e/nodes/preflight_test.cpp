// --preflight: the doctor examines the nodes before they start a run.
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

}  // namespace
}  // namespace fleetrun::preflight_test
