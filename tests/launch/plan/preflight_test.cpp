#include "launch/plan/preflight.h"

#include <algorithm>

#include <doctest/doctest.h>

namespace fleetrun::launch::preflight_test {
namespace {

bool has(const std::vector<std::string>& warnings, const std::string& part) {
  return std::any_of(warnings.begin(), warnings.end(),
                     [&](const std::string& warning) { return warning.find(part) != std::string::npos; });
}

ClusterSpec two_ranks() {
  ClusterSpec cluster;
  cluster.device_ids = {{0}, {1}};
  return cluster;
}

TEST_CASE("variables that fleetrun sets itself are named, others are not") {
  LaunchOptions options;
  options.env.value = {"RANK=0", "MASTER_PORT=29500", "MINE=1", "PATH", "POD_NAME=mine"};
  const std::optional<EmbeddedRuntime> embedded = EmbeddedRuntime{.environment = {{"WORLD_SIZE", "9"}}};
  CHECK(preflight({options, {}, embedded, two_ranks()}) ==
        std::vector<std::string>{
            "--env MASTER_PORT has no effect: fleetrun sets this variable itself",
            "--env RANK has no effect: fleetrun sets this variable itself",
            "env.WORLD_SIZE of the job file has no effect: fleetrun sets this variable itself"});
}

TEST_CASE("a variable of NCCL does not hide the warning of --insecure") {
  LaunchOptions options;
  options.insecure.value = true;
  options.nccl.value = {"NCCL_DEBUG=INFO"};
  ClusterSpec cluster = two_ranks();
  cluster.nodes.resize(2);
  CHECK(has(preflight({options, {}, std::nullopt, cluster}), "--insecure: everybody"));
}

}  // namespace
}  // namespace fleetrun::launch::preflight_test
