#include "launch/worker_plan.h"

#include <doctest/doctest.h>

#include "base/rank_env.h"

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
                         .nccl = nccl,
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
  std::vector<std::string> nccl;
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

TEST_CASE("only our own worker is told what is ours") {
  Plan plan;
  CHECK_FALSE(plan.workers()[0].environment.has("FLEETRUN_RANK"));
  CHECK_FALSE(plan.workers()[0].environment.has("OMP_WAIT_POLICY"));
  plan.embedded = EmbeddedPlan{.job_environment = {},
                               .threads = {},
                               .store = {"127.0.0.1", 6000},
                               .key_fd = 20,
                               .dump_dir = "/run/dump",
                               .passes_dir = "/run/passes",
                               .progress_fds = {30, 31}};
  const WorkerSpec worker = plan.workers()[1];
  CHECK(worker.inherited_fds == std::vector<int>{20, 31});
  CHECK(worker.environment.get("OMP_WAIT_POLICY") == "passive");
  CHECK(read_rank_env(worker.environment) == RankEnv{.rank = 1,
                                                     .world_size = 2,
                                                     .local_rank = 1,
                                                     .local_size = 2,
                                                     .run_id = "run-1",
                                                     .store = {"127.0.0.1", 6000},
                                                     .key_fd = 20,
                                                     .progress_fd = 31,
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

TEST_CASE("a GPU rank is told the index of its first GPU") {
  Plan plan;
  plan.cluster.device = Device::cuda;
  plan.cluster.visible_gpus = {"4", "5", "6", "7"};
  plan.cluster.device_ids = {{0, 1}, {2, 3}};
  plan.embedded = EmbeddedPlan{};
  CHECK(read_rank_env(plan.workers()[1].environment).device == "cuda:2");
}

}  // namespace
}  // namespace fleetrun::launch::worker_plan_test
