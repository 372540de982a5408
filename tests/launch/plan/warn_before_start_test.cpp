#include "launch/plan/warn_before_start.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "launch/cli/command_line.h"

namespace fleetrun::launch::warn_before_start_test {
namespace {

std::vector<std::string> warnings_of(std::vector<std::string> words, const ClusterSpec& cluster,
                                     const Environment& environment = {}) {
  const LaunchOptions options = parse_launch_options(words, {}).options;
  return warn_before_start({options, environment, std::nullopt, cluster});
}

ClusterSpec two_nodes(bool ipv6) {
  ClusterSpec cluster;
  cluster.nodes = {{"fd00::1", {{0}}}, {"fd00::2", {{0}}}};
  cluster.ipv6 = ipv6;
  return cluster;
}

TEST_CASE("who runs Python over IPv6 is told that PaddlePaddle cannot read such endpoints") {
  const std::vector<std::string> wanted = {
      "PaddlePaddle splits PADDLE_TRAINER_ENDPOINTS at ':': its programs need IPv4 addresses of the nodes"};
  CHECK(warnings_of({"train.py"}, two_nodes(true)) == wanted);
  CHECK(warnings_of({"train.py"}, two_nodes(false)).empty());
  CHECK(warnings_of({"job.json"}, two_nodes(true)).empty());
  CHECK(warnings_of({"/bin/true"}, two_nodes(true)).empty());
}

TEST_CASE("each warning is kept beside the others") {
  Environment environment;
  environment.set("NCCL_DEBUGG", "INFO");
  const auto warnings = warnings_of({"--insecure", "train.py"}, two_nodes(true), environment);
  REQUIRE(warnings.size() == 3);
  CHECK(warnings[0].starts_with("--insecure: "));
  CHECK(warnings[1].starts_with("PaddlePaddle splits "));
  CHECK(warnings[2].find("NCCL_DEBUGG") != std::string::npos);
}

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
  options.env.value = {{{}, "RANK=0"}, {{}, "MASTER_PORT=29500"}, {{}, "MINE=1"},
                       {{}, "PATH"},   {{}, "POD_NAME=mine"},     {1, "LOCAL_RANK=5"}};
  const std::optional<EmbeddedRuntime> embedded = EmbeddedRuntime{.environment = {{"WORLD_SIZE", "9"}}};
  CHECK(warn_before_start({options, {}, embedded, two_ranks()}) ==
        std::vector<std::string>{
            "--env 1:LOCAL_RANK has no effect: fleetrun sets this variable itself",
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
  CHECK(has(warn_before_start({options, {}, std::nullopt, cluster}), "--insecure: everybody"));
}

}  // namespace
}  // namespace fleetrun::launch::warn_before_start_test
