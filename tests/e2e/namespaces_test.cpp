// Trainings whose ranks are on different hosts, as far as they can tell: the same weights as on one.
#include "e2e/namespaces.h"
#include "support/leave_out.h"

namespace fleetrun::namespaces_test {
namespace {

const std::string kJob = R"({
  "model": {"name": "mlp", "hidden": [64]},
  "data": {"train": {"format": "synthetic", "samples": 256, "shape": [1, 8, 8], "classes": 4}, "batch_size": 16},
  "optimizer": {"name": "momentum", "learning_rate": 0.001},
  "train": {"max_steps": 30, "log_every": 100}
})";

struct Way {
  std::string told;     // what rank 0 says of it
  std::string backend;  // on one host; between hosts it is Gloo
  Words strategy;
};

const std::vector<Way> kWays = {
    {"1 communicator, each", "gloo", {"strategy.use_hierarchical_allreduce=false"}},
    {"in groups of 2 ranks by their leaders", "auto", {"strategy.hierarchical_allreduce_algorithm=leader"}},
    {"in groups of 2 ranks by slices", "auto", {"strategy.hierarchical_allreduce_algorithm=scatter"}},
};

Words job_words(const Way& way) {
  Words words = {"job.json"};
  words.insert(words.end(), way.strategy.begin(), way.strategy.end());
  if (way.backend == "auto") {
    words.emplace_back("strategy.use_hierarchical_allreduce=true");
    words.emplace_back("strategy.hierarchical_allreduce_inter_nranks=2");
  }
  return words;
}

std::string weights_of(const Launch& launch, const Words& command, const Way& way,
                       const std::string& backend) {
  launch.folder.write("job.json", kJob);
  ChildOptions options = launch.options();
  options.environment["FLEETRUN_COMM_BACKEND"] = backend;
  const ChildResult result = run_child(command, options);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(launch.folder.read("log/workerlog.0"), way.told));
  return launch.folder.read("output/model.safetensors");
}

std::string weights_on_one_host(int ranks, const Way& way) {
  const Launch launch;
  Words command = {FLEETRUN_BINARY, "--nproc_per_node=" + std::to_string(ranks), "--device=cpu"};
  const Words words = job_words(way);
  command.insert(command.end(), words.begin(), words.end());
  return weights_of(launch, command, way, way.backend);
}

TEST_CASE("4 ranks end with the same weights, bit by bit, on one host, on 2 and on 4") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  for (const Way& way : kWays) {
    const std::string wanted = weights_on_one_host(4, way);
    CHECK_FALSE(wanted.empty());
    for (const int nodes : {2, 4}) {
      CAPTURE(way.told);
      CAPTURE(nodes);
      const Namespaces network(nodes);
      const NodesLaunch launch(network, 4);
      CHECK(weights_of(launch, launch.command(job_words(way)), way, "auto") == wanted);
    }
  }
}

}  // namespace
}  // namespace fleetrun::namespaces_test
