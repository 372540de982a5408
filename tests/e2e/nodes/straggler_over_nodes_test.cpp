// Over several nodes the first node finds slow ranks on all of them.
#include "e2e/nodes/cluster.h"

namespace fleetrun::straggler_over_nodes_test {
namespace {

const std::string kJob = R"({
  "model": {"name": "lenet"},
  "data": {"train": {"format": "synthetic", "samples": 512, "shape": [3, 32, 32], "classes": 10}, "batch_size": 32},
  "optimizer": {"name": "momentum", "learning_rate": 0.01},
  "train": {"max_steps": 10000000, "log_every": 1000}
})";

nlohmann::json ps_on_first(const Cluster& cluster) {
  return nlohmann::json::parse(
      run_child({FLEETRUN_BINARY, "ps", "--json", "--log_dir=" + cluster.folder(0) + "/log"}).out);
}

TEST_CASE("the first node names a slow rank of another node, which says nothing itself") {
  Cluster cluster(2);
  for (const int node : {0, 1}) {
    std::ofstream(cluster.folder(node) + "/job.json") << kJob;
    cluster.start(node, {"--nproc_per_node=2", "--device=cpu", "--straggler_after=4", "job.json"});
  }
  REQUIRE(comes_true([&] { return contains(cluster.log(0, 0), "[Epoch 0, batch 0]"); }, within(60s)));
  const std::string pid = std::to_string(ps_on_first(cluster)["ranks"].at(3)["pid"].get<int>());
  ChildProcess brake(
      {"/bin/sh", "-c",
       "while kill -STOP " + pid + "; do sleep 0.05; kill -CONT " + pid + "; sleep 0.02; done"});
  CHECK_MESSAGE(cluster.says(0, "fleetrun: rank 3 on "), cluster.errors(0));
  CHECK(ps_on_first(cluster)["stragglers"].at(0)["rank"] == 3);
  cluster.send(0, SIGTERM);
  cluster.ends();
  brake.wait();
  CHECK_FALSE(contains(cluster.errors(1), "rank 3 on "));
  CHECK(cluster.report(0)["stragglers"].size() == 1);
}

}  // namespace
}  // namespace fleetrun::straggler_over_nodes_test
