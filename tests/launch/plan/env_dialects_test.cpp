#include "launch/plan/env_dialects.h"

#include <doctest/doctest.h>

#include "launch/plan/world_lists.h"

namespace fleetrun::launch::env_dialects_test {
namespace {

const Endpoints kEndpoints = {.ranks = {{"127.0.0.1", 10097}, {"127.0.0.1", 59371}},
                              .master = {"127.0.0.1", 29500}};

ClusterSpec cpu_cluster() {
  ClusterSpec cluster;
  cluster.device_ids = {{0}, {1}};
  return cluster;
}

ClusterSpec gpu_cluster() {
  ClusterSpec cluster = cpu_cluster();
  cluster.device = DeviceKind::cuda;
  cluster.device_ids_given = true;
  cluster.visible_gpus = {"4", "5"};
  return cluster;
}

const PaddleNames kPaddleNames = {
    .log_dir = "/run/log", .pod = "abcdef", .backup_env = "/run/log/backup_env.1.json"};

Variables paddle(const ClusterSpec& cluster, int rank, Environment environment = {}) {
  write_paddle_environment(cluster, kEndpoints, rank, kPaddleNames, environment);
  write_world_lists(list_world(cluster, kEndpoints), "", environment);
  return environment.variables();
}

TEST_CASE("a Paddle worker on a GPU gets the whole contract and nothing else") {
  CHECK(paddle(gpu_cluster(), 1) == Variables{{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
                                              {"CUDA_VISIBLE_DEVICES", "4,5"},
                                              {"FLAGS_selected_gpus", "1"},
                                              {"PADDLE_AUTO_CLUSTER", "0"},
                                              {"PADDLE_BACKUP_ENV_PATH", "/run/log/backup_env.1.json"},
                                              {"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:59371"},
                                              {"PADDLE_GLOBAL_RANK", "1"},
                                              {"PADDLE_GLOBAL_SIZE", "2"},
                                              {"PADDLE_LOCAL_DEVICE_IDS", "1"},
                                              {"PADDLE_LOCAL_RANK", "1"},
                                              {"PADDLE_LOCAL_SIZE", "2"},
                                              {"PADDLE_LOG_DIR", "/run/log"},
                                              {"PADDLE_MASTER", "127.0.0.1:29500"},
                                              {"PADDLE_NNODES", "1"},
                                              {"PADDLE_RANK_IN_NODE", "1"},
                                              {"PADDLE_TRAINERS_NUM", "2"},
                                              {"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:10097,127.0.0.1:59371"},
                                              {"PADDLE_TRAINER_ID", "1"},
                                              {"PADDLE_WITH_GLOO", "0"},
                                              {"PADDLE_WORLD_DEVICE_IDS", "0,1"},
                                              {"POD_NAME", "abcdef"}});
}

TEST_CASE("a Paddle worker on a CPU is told to use Gloo and selects no GPU") {
  Environment inherited;
  inherited.set("FLAGS_selected_gpus", "7");
  const Variables variables = paddle(cpu_cluster(), 0, inherited);
  CHECK(variables.at("PADDLE_DISTRI_BACKEND") == "gloo");
  CHECK(variables.count("FLAGS_selected_gpus") == 0);
  CHECK(variables.count("CUDA_VISIBLE_DEVICES") == 0);
}

TEST_CASE("worker slots select by index, too, and a hidden GPU stays hidden") {
  ClusterSpec cluster = cpu_cluster();
  cluster.device_ids_given = true;
  cluster.hide_gpus = true;
  CHECK(paddle(cluster, 1).at("FLAGS_selected_gpus") == "1");
  CHECK(paddle(cluster, 1).at("CUDA_VISIBLE_DEVICES").empty());
}

TEST_CASE("the devices of one worker are parted by colons in the list of all") {
  ClusterSpec cluster = gpu_cluster();
  cluster.visible_gpus = {"0", "1", "2", "3"};
  cluster.device_ids = {{0, 1}, {2, 3}};
  const Variables variables = paddle(cluster, 1);
  CHECK(variables.at("FLAGS_selected_gpus") == "2,3");
  CHECK(variables.at("PADDLE_WORLD_DEVICE_IDS") == "0:1,2:3");
}

TEST_CASE("what would mislead a worker is not passed on") {
  Environment inherited;
  for (const char* name : {"http_proxy", "https_proxy", "PADDLE_TRAINING_ROLE", "FLAGS_START_PORT",
                           "DISTRIBUTED_TRAINER_ENDPOINTS"})
    inherited.set(name, "x");
  inherited.set("HTTP_PROXY", "kept");
  inherited.set("PADDLE_TRAINER_ID", "9");  // a pod's, or a launcher's around us
  const Variables variables = paddle(cpu_cluster(), 0, inherited);
  CHECK(variables.count("http_proxy") == 0);
  CHECK(variables.count("https_proxy") == 0);
  CHECK(variables.count("PADDLE_TRAINING_ROLE") == 0);
  CHECK(variables.count("FLAGS_START_PORT") == 0);
  CHECK(variables.count("DISTRIBUTED_TRAINER_ENDPOINTS") == 0);
  CHECK(variables.at("HTTP_PROXY") == "kept");
  CHECK(variables.at("PADDLE_TRAINER_ID") == "0");
}

TEST_CASE("Gloo's rendezvous is named only when Gloo is asked for") {
  Environment inherited;
  inherited.set("PADDLE_WITH_GLOO", "1");
  CHECK(paddle(cpu_cluster(), 0, inherited).at("PADDLE_GLOO_RENDEZVOUS") == "3");
  CHECK(paddle(cpu_cluster(), 0).count("PADDLE_GLOO_RENDEZVOUS") == 0);
}

TEST_CASE("a PyTorch worker gets the whole contract and nothing else") {
  Environment environment;
  write_torch_environment(gpu_cluster(), kEndpoints, 1, {"run-7", "/tmp/log/error.1.json"}, environment);
  CHECK(environment.variables() ==
        Variables{{"GROUP_RANK", "0"},
                  {"GROUP_WORLD_SIZE", "1"},
                  {"LOCAL_RANK", "1"},
                  {"LOCAL_WORLD_SIZE", "2"},
                  {"MASTER_ADDR", "127.0.0.1"},
                  {"MASTER_PORT", "29500"},
                  {"RANK", "1"},
                  {"ROLE_NAME", "default"},
                  {"ROLE_RANK", "1"},
                  {"ROLE_WORLD_SIZE", "2"},
                  {"TORCHELASTIC_ERROR_FILE", "/tmp/log/error.1.json"},
                  {"TORCHELASTIC_MAX_RESTARTS", "0"},
                  {"TORCHELASTIC_RESTART_COUNT", "0"},
                  {"TORCHELASTIC_RUN_ID", "run-7"},
                  {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
                  {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                  {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                  {"WORLD_SIZE", "2"}});
}

TEST_CASE(
    "a rank does not inherit the NODE_RANK of a run around its own, but keeps one that the user chose") {
  Environment inside_a_rank, chosen;
  inside_a_rank.set("GROUP_RANK", "1");
  for (Environment* const environment : {&inside_a_rank, &chosen}) {
    environment->set("NODE_RANK", "1");
    write_torch_environment(gpu_cluster(), kEndpoints, 1, {}, *environment);
  }
  CHECK_FALSE(inside_a_rank.has("NODE_RANK"));
  CHECK(chosen.get("NODE_RANK") == "1");
}

TEST_CASE("IPv6 addresses have brackets in endpoints, and none in MASTER_ADDR") {
  const Endpoints endpoints = {.ranks = {{"fd00::1", 6070}, {"fd00::2", 6070}}, .master = {"fd00::1", 6071}};
  ClusterSpec cluster;
  cluster.nodes = {{"fd00::1", {{0}}}, {"fd00::2", {{0}}}};
  cluster.device_ids = {{0}};
  cluster.node_rank = 1;
  cluster.ipv6 = true;
  cluster.interface = "eth1";
  Environment environment;
  write_paddle_environment(cluster, endpoints, 1, kPaddleNames, environment);
  write_world_lists(list_world(cluster, endpoints), "", environment);
  write_torch_environment(cluster, endpoints, 1, {}, environment);
  CHECK(environment.get("PADDLE_TRAINER_ENDPOINTS") == "[fd00::1]:6070,[fd00::2]:6070");
  CHECK(environment.get("PADDLE_CURRENT_ENDPOINT") == "[fd00::2]:6070");
  CHECK(environment.get("PADDLE_MASTER") == "[fd00::1]:6071");
  CHECK(environment.get("MASTER_ADDR") == "fd00::1");
  CHECK(environment.get("GLOO_SOCKET_IFNAME") == "eth1");
  CHECK(environment.get("NCCL_SOCKET_FAMILY") == "AF_INET6");
}

TEST_CASE("names that a platform or a user gave are kept") {
  Environment inherited;
  inherited.set("POD_NAME", "worker-3");
  CHECK(paddle(cpu_cluster(), 0, inherited).at("POD_NAME") == "worker-3");
  inherited.set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0");
  write_torch_environment(cpu_cluster(), kEndpoints, 0, {"run-7", ""}, inherited);
  CHECK(inherited.get("TORCH_NCCL_ASYNC_ERROR_HANDLING") == "0");
}

TEST_CASE("with a virtual local rank each worker sees its own GPUs, as the first ones, for both frameworks") {
  ClusterSpec cluster = gpu_cluster();
  cluster.own_gpus_only = true;
  const Variables variables = paddle(cluster, 1);
  CHECK(variables.at("CUDA_VISIBLE_DEVICES") == "5");
  CHECK(variables.at("FLAGS_selected_gpus") == "0");
  Environment environment;
  write_torch_environment(cluster, kEndpoints, 1, {.run_id = "run-7", .virtual_local_rank = true},
                          environment);
  CHECK(environment.get("LOCAL_RANK") == "0");
  CHECK(environment.get("RANK") == "1");
}

}  // namespace
}  // namespace fleetrun::launch::env_dialects_test
