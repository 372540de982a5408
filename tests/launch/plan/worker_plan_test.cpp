#include "launch/plan/worker_plan.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/run/rank_env.h"
#include "base/system/file.h"
#include "launch/console/banner.h"
#include "launch/host/limits.h"
#include "launch/plan/port_guard.h"
#include "support/processor_time.h"

namespace fleetrun::launch::worker_plan_test {
namespace {

struct Plan {
  Plan() {
    cluster.device_ids = {{0}, {1}};
    cluster.cores = 8;
    endpoints = {.ranks = {{"127.0.0.1", 5000}, {"127.0.0.1", 5001}}, .master = {"127.0.0.1", 5002}};
    program = {ProgramKind::job, "/usr/libexec/fleetrun-worker", {"fleetrun-worker", "job.json"}};
    environment.set("HOME", "/home/me");
  }
  std::vector<WorkerSpec> workers() const {
    return plan_workers({.cluster = cluster,
                         .endpoints = endpoints,
                         .program = program,
                         .wrapped = wrapped,
                         .options = options,
                         .environment = environment,
                         .log_dir = "out",
                         .absolute_log_dir = "/run/out",
                         .run_id = "run-1",
                         .embedded = embedded});
  }

  ClusterSpec cluster;
  Endpoints endpoints;
  Program program;
  std::map<int, Program> wrapped;
  LaunchOptions options;
  Environment environment;
  std::optional<EmbeddedPlan> embedded;
};

TEST_CASE("each rank runs the program as given, with a log of its own") {
  const std::vector<WorkerSpec> workers = Plan().workers();
  REQUIRE(workers.size() == 2);
  CHECK(workers[1].rank == 1);
  CHECK(workers[1].executable == "/usr/libexec/fleetrun-worker");
  CHECK(workers[1].argv == std::vector<std::string>{"fleetrun-worker", "job.json"});
  CHECK(workers[1].log_path == "out/workerlog.1");
  CHECK(workers[1].environment.get("PADDLE_TRAINER_ID") == "1");
  CHECK(workers[1].environment.get("RANK") == "1");
  CHECK(workers[1].environment.get("HOME") == "/home/me");
  CHECK(workers[1].environment.get("TORCHELASTIC_ERROR_FILE") == "/run/out/error.1.json");
  CHECK(workers[1].inherited_fds.empty());
}

TEST_CASE("the cores are shared among the ranks unless the user says otherwise") {
  Plan plan;
  CHECK(plan.workers()[0].environment.get("OMP_NUM_THREADS") == "4");
  plan.cluster.cores = 1;
  CHECK(plan.workers()[0].environment.get("OMP_NUM_THREADS") == "1");
  plan.environment.set("OMP_NUM_THREADS", "3");
  CHECK(plan.workers()[0].environment.get("OMP_NUM_THREADS") == "3");
}

TEST_CASE("a program gets what Python reads, because it may start Python") {
  Plan plan;
  plan.program = {ProgramKind::executable, "/bin/bash", {"bash", "train.sh"}};
  const WorkerSpec worker = plan.workers()[0];
  CHECK(worker.environment.has("FLEETRUN_STACK_SIGNAL"));
  CHECK(worker.environment.get("PYTHONFAULTHANDLER") == "1");
}

TEST_CASE("only our own worker is told what is ours") {
  Plan plan;
  CHECK_FALSE(plan.workers()[0].environment.has("FLEETRUN_RANK"));
  CHECK_FALSE(plan.workers()[0].environment.has("OMP_WAIT_POLICY"));
  plan.embedded = EmbeddedPlan{.job_environment = {},
                               .threads = {},
                               .store = {"127.0.0.1", 6000},
                               .key_fd = 20,
                               .job_fd = 40,
                               .dump_dir = "/run/dump",
                               .passes_dir = "/run/passes",
                               .progress_fds = {30, 31}};
  const WorkerSpec worker = plan.workers()[1];
  CHECK(worker.inherited_fds == std::vector<int>{20, 31, 40});
  CHECK(worker.environment.get("OMP_WAIT_POLICY") == "passive");
  CHECK(read_rank_env(worker.environment) == RankEnv{.rank = 1,
                                                     .world_size = 2,
                                                     .local_rank = 1,
                                                     .local_size = 2,
                                                     .run_id = "run-1",
                                                     .store = {"127.0.0.1", 6000},
                                                     .key_fd = 20,
                                                     .progress_fd = 31,
                                                     .job_fd = 40,
                                                     .log_dir = "/run/out",
                                                     .device = "cpu",
                                                     .dump_dir = "/run/dump",
                                                     .passes_dir = "/run/passes",
                                                     .threads = 4});
}

TEST_CASE("the job's variables and threads win over the launcher's environment, the contract over both") {
  Plan plan;
  plan.environment.set("NCCL_DEBUG", "WARN");
  plan.embedded = EmbeddedPlan{.job_environment = {{"NCCL_DEBUG", "INFO"}, {"RANK", "77"}}, .threads = 2};
  const WorkerSpec worker = plan.workers()[0];
  CHECK(worker.environment.get("NCCL_DEBUG") == "INFO");
  CHECK(worker.environment.get("RANK") == "0");
  CHECK(worker.environment.get("OMP_NUM_THREADS") == "2");
  CHECK(read_rank_env(worker.environment).threads == 2);
}

TEST_CASE("variables of flags win over those of the job, and a name alone is inherited") {
  Plan plan;
  plan.environment.set("LR", "0.1");
  plan.embedded = EmbeddedPlan{.job_environment = {{"A", "job"}, {"B", "job"}, {"LR", "job"}}};
  plan.options.env.value = {{{}, "A=flag"}, {{}, "LR"}, {{}, "EMPTY="}, {{}, "EQUATION=a=b"}};
  const Environment environment = plan.workers()[0].environment;
  CHECK(environment.get("A") == "flag");
  CHECK(environment.get("B") == "job");
  CHECK(environment.get("LR") == "0.1");
  CHECK(environment.get("EMPTY") == "");
  CHECK(environment.get("EQUATION") == "a=b");
}

TEST_CASE("a variable of one rank reaches that rank only, and the later of two wins") {
  Plan plan;
  plan.options.env.value = {{{}, "LR=0.1"}, {1, "LR=0.2"}};
  CHECK(plan.workers()[0].environment.get("LR") == "0.1");
  CHECK(plan.workers()[1].environment.get("LR") == "0.2");
}

TEST_CASE("torchrun's names for the run, its role and its signals reach the workers") {
  Plan plan;
  plan.options.rdzv_id.value = "job-42";
  plan.options.role.value = "trainer";
  plan.options.signals_to_handle.value = parse_signals("--signals_to_handle", "SIGTERM,SIGUSR1");
  const Environment environment = plan.workers()[1].environment;
  CHECK(environment.get("TORCHELASTIC_RUN_ID") == "job-42");
  CHECK(environment.get("ROLE_NAME") == "trainer");
  CHECK(environment.get("TORCHELASTIC_SIGNALS_TO_HANDLE") == "SIGTERM,SIGUSR1");
}

TEST_CASE(
    "all workers of a node have one pod name of six letters, and a file for PaddlePaddle's backup each") {
  Plan plan;
  const std::vector<WorkerSpec> workers = plan.workers();
  const std::string pod = workers[0].environment.get_or("POD_NAME", "");
  CHECK(pod.size() == 6);
  CHECK(workers[1].environment.get("POD_NAME") == pod);
  Plan second;
  second.cluster.nodes = {{"127.0.0.1", second.cluster.device_ids}, {"127.0.0.2", second.cluster.device_ids}};
  second.cluster.node_rank = 1;
  second.endpoints.ranks.resize(4, {"127.0.0.2", 6070});
  CHECK(second.workers()[0].environment.get("POD_NAME") != pod);
  CHECK(workers[1].environment.get("PADDLE_BACKUP_ENV_PATH") == "/run/out/backup_env.1.json");
  CHECK(workers[1].environment.get("PADDLE_LOG_DIR") == "/run/out");
  plan.options.dry_run.value = "text";  // nobody writes the file
  CHECK_FALSE(plan.workers()[0].environment.has("PADDLE_BACKUP_ENV_PATH"));
}

TEST_CASE("a rank whose streams are shown differently has a log of its own for stderr") {
  Plan plan;
  plan.cluster.console.apart = {false, true};
  CHECK(plan.workers()[0].error_log_path.empty());
  CHECK(plan.workers()[1].error_log_path == "out/workerlog.1.err");
}

TEST_CASE("a GPU rank is told the index of its first GPU") {
  Plan plan;
  plan.cluster.device = DeviceKind::cuda;
  plan.cluster.visible_gpus = {"4", "5", "6", "7"};
  plan.cluster.device_ids = {{0, 1}, {2, 3}};
  plan.embedded = EmbeddedPlan{};
  CHECK(read_rank_env(plan.workers()[1].environment).device == "cuda:2");
}

// Worked out from the published launcher: 4 nodes, 2 workers each, ports from 6070 on every node.
TEST_CASE("rank 5 of 4 nodes with 2 ranks each gets what PaddlePaddle's launcher of several nodes gives it") {
  Plan plan;
  for (const char* host : {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"})
    plan.cluster.nodes.push_back({host, {{0}, {1}}});
  plan.cluster.node_rank = 2;
  plan.cluster.interface = "eth1";
  plan.endpoints = expect_endpoints(plan.cluster);
  const std::vector<WorkerSpec> workers = plan.workers();
  const std::map<std::string, std::string> wanted = {
      {"PADDLE_TRAINER_ID", "5"},
      {"PADDLE_TRAINERS_NUM", "8"},
      {"PADDLE_CURRENT_ENDPOINT", "10.0.0.3:6071"},
      {"PADDLE_TRAINER_ENDPOINTS",
       "10.0.0.1:6070,10.0.0.1:6071,10.0.0.2:6070,10.0.0.2:6071,10.0.0.3:6070,10.0.0.3:6071,10.0.0.4:6070,10.0.0.4:6071"},
      {"PADDLE_RANK_IN_NODE", "1"},
      {"PADDLE_LOCAL_DEVICE_IDS", "1"},
      {"PADDLE_WORLD_DEVICE_IDS", "0,1,0,1,0,1,0,1"},
      {"PADDLE_GLOBAL_RANK", "5"},
      {"PADDLE_GLOBAL_SIZE", "8"},
      {"PADDLE_LOCAL_RANK", "1"},
      {"PADDLE_LOCAL_SIZE", "2"},
      {"PADDLE_NNODES", "4"},
      {"PADDLE_MASTER", "10.0.0.1:6072"},
      {"PADDLE_DISTRI_BACKEND", "gloo"},
      {"MASTER_ADDR", "10.0.0.1"},
      {"MASTER_PORT", "6072"},
      {"RANK", "5"},
      {"WORLD_SIZE", "8"},
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"GROUP_RANK", "2"},
      {"GROUP_WORLD_SIZE", "4"},
      {"NODE_RANK", "2"},
      {"NCCL_SOCKET_IFNAME", "eth1"},
      {"GLOO_SOCKET_IFNAME", "eth1"}};
  CHECK(workers[1].rank == 5);
  for (const auto& [name, value] : wanted) {
    CAPTURE(name);
    CHECK(workers[1].environment.get_or(name, "") == value);
  }
  CHECK(workers[1].environment.get("FLAGS_selected_gpus") == std::nullopt);
  CHECK(environment_table(workers[0].environment) ==
        read_file(std::string(FLEETRUN_SOURCE_DIR) + "/tests/launch/expected/env-table-4-nodes.txt", 65536));
}

TEST_CASE("nodes may have unequal numbers of ranks") {
  Plan plan;
  plan.cluster.nodes = {{"10.0.0.1", {{0}, {1}, {2}}}, {"10.0.0.2", {{0}, {1}}}};
  plan.cluster.node_rank = 1;
  plan.endpoints = expect_endpoints(plan.cluster);
  const std::vector<WorkerSpec> workers = plan.workers();
  CHECK(workers[0].rank == 3);
  CHECK(workers[0].environment.get("PADDLE_WORLD_DEVICE_IDS") == "0,1,2,0,1");
  CHECK(workers[1].environment.get("PADDLE_CURRENT_ENDPOINT") == "10.0.0.2:6071");
  CHECK(workers[0].log_path == "out/workerlog.0");  // numbered on each node
}

constexpr int kNodes = 1024, kRanksPerNode = 8;

Plan plan_of_many() {
  Plan plan;
  plan.cluster.device_ids.clear();
  for (int rank = 0; rank < kRanksPerNode; ++rank) plan.cluster.device_ids.push_back({rank});
  for (int node = 0; node < kNodes; ++node)
    plan.cluster.nodes.push_back(
        {fmt::format("10.100.{}.{}", 100 + node / 100, 100 + node % 100), plan.cluster.device_ids});
  plan.cluster.node_rank = 1000;
  plan.endpoints = expect_endpoints(plan.cluster);
  return plan;
}

TEST_CASE("1,024 nodes with 8 ranks each: every string that a rank gets fits") {
  Plan plan = plan_of_many();
  plan.environment.set("PADDLE_TRAINER_ENDPOINTS", "those of another run");
  plan.embedded = EmbeddedPlan{.job_environment = {}, .threads = {}, .store = {"10.100.100.100", 6000}};
  const std::vector<WorkerSpec> workers = plan.workers();
  REQUIRE(workers.size() == kRanksPerNode);  // of this node only
  for (const WorkerSpec& worker : workers) {
    CHECK_NOTHROW(check_argument_sizes(worker.argv, worker.environment));
    CHECK_FALSE(worker.environment.has("PADDLE_TRAINER_ENDPOINTS"));
    CHECK(worker.environment.get("FLEETRUN_TRAINER_ENDPOINTS_FILE") == "/run/out/endpoints.log");
    CHECK(worker.environment.get("PADDLE_CURRENT_ENDPOINT") ==
          "10.100.110.100:" + std::to_string(6070 + worker.rank % kRanksPerNode));
    CHECK(worker.environment.get("PADDLE_TRAINERS_NUM") == "8192");
    const Environment whole = worker.whole_environment();
    const std::string endpoints = whole.get_or("PADDLE_TRAINER_ENDPOINTS", "");
    CHECK(std::count(endpoints.begin(), endpoints.end(), ',') == kNodes * kRanksPerNode - 1);
    CHECK(whole.get("PADDLE_WORLD_DEVICE_IDS") == worker.environment.get("PADDLE_WORLD_DEVICE_IDS"));
  }
  CHECK(workers.back().rank == 8007);
}

TEST_CASE("each of 1,024 nodes plans its own 8 ranks only, in milliseconds") {
  Plan plan = plan_of_many();
  constexpr int kStride = 16;  // each sixteenth node is enough
  const double seconds = testing::processor_seconds_of([&] {
    for (plan.cluster.node_rank = 0; plan.cluster.node_rank < kNodes; plan.cluster.node_rank += kStride) {
      int rank = plan.cluster.node_rank * kRanksPerNode;
      for (const WorkerSpec& worker : plan.workers()) CHECK(worker.rank == rank++);
      CHECK(rank == (plan.cluster.node_rank + 1) * kRanksPerNode);
    }
  });
  const double per_node = seconds / (kNodes / kStride);
  CHECK(per_node < 0.3);  // 1 ms, with sanitizers 20; a plan of all 8,192 ranks would take 1 s
  MESSAGE("planned the ranks of a node in " << per_node << " s of processor time");
}

}  // namespace
}  // namespace fleetrun::launch::worker_plan_test
