// Pods of Kubernetes, Kubeflow, Volcano and PaddlePaddle's cloud. Sources of the variables:
//   kubernetes.io, "Job with Pod-to-Pod Communication" (example-job in headless-svc) and "StatefulSets" (web-0, nginx)
//   jobset.sigs.k8s.io, API reference, "Network" (the host names of pods: set-group-job-index.subdomain)
//   kubeflow/training-operator, pkg/controller.v1/pytorch/envvar.go; kubeflow.org, "Trainer: PyTorch" (PET_*)
//   volcano-sh/volcano, docs/user-guide/how_to_use_svc_plugin.md and how_to_use_env_plugin.md; a workload of Azure ML with VC_WORKER_HOSTS and VK_TASK_INDEX
//   PaddlePaddle/Paddle, python/paddle/fluid/tests/unittests/test_launch.sh ("use paddlecloud")
#include <doctest/doctest.h>

#include "launch/schedulers/facts.h"

namespace fleetrun::launch::pods_test {
namespace {

using test::error_of;
using test::facts_of;
using test::Texts;

// As the kubelet writes it.
std::string etc_hosts(const std::string& names) {
  return "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n10.244.1.7\t" + names + "\n";
}

TEST_CASE(
    "a pod of an Indexed Job knows its index and the name of the first pod, but not how many there are") {
  const Allocation found =
      from_indexed_job(
          facts_of({{"JOB_COMPLETION_INDEX", "2"}, {"HOSTNAME", "example-job-2"}},
                   {{"/etc/hosts",
                     etc_hosts("example-job-2.headless-svc.default.svc.cluster.local\texample-job-2")}}))
          .value();
  CHECK(found.node_count == 0);
  CHECK(found.this_node == 2);
  CHECK(found.master == "example-job-0.headless-svc.default.svc.cluster.local");
  CHECK(found.started_on_every_node);
  CHECK_FALSE(from_indexed_job(facts_of({{"HOSTNAME", "example-job-2"}})));
}

TEST_CASE("a pod of a JobSet has the name of the set, the group, the job and the index") {
  const Allocation found =
      from_indexed_job(
          facts_of(
              {{"JOB_COMPLETION_INDEX", "3"}, {"HOSTNAME", "pytorch-workers-0-3"}},
              {{"/etc/hosts",
                etc_hosts("pytorch-workers-0-3.pytorch.default.svc.cluster.local pytorch-workers-0-3")}}))
          .value();
  CHECK(found.master == "pytorch-workers-0-0.pytorch.default.svc.cluster.local");
}

TEST_CASE("without a subdomain or /etc/hosts the first pod has its short name") {
  CHECK(from_indexed_job(facts_of({{"JOB_COMPLETION_INDEX", "1"}, {"HOSTNAME", "j-1"}}))->master == "j-0");
  CHECK(from_indexed_job(facts_of({{"JOB_COMPLETION_INDEX", "1"}, {"HOSTNAME", "node"}}))->master.empty());
}

TEST_CASE("an index and a host name that disagree are an error") {
  CHECK(error_of([] {
          from_indexed_job(facts_of({{"JOB_COMPLETION_INDEX", "1"}, {"HOSTNAME", "j-2"}}));
        }) == "JOB_COMPLETION_INDEX is 1, but HOSTNAME is j-2, which ends with 2");
  CHECK(error_of([] {
          from_indexed_job(facts_of({{"JOB_COMPLETION_INDEX", "one"}}));
        }) == "JOB_COMPLETION_INDEX is \"one\", must be a whole number between 0 and 65536");
}

TEST_CASE("a pod of a StatefulSet ends with its number") {
  const Allocation found =
      from_stateful_set(facts_of({{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"HOSTNAME", "web-1"}},
                                 {{"/etc/hosts", etc_hosts("web-1.nginx.default.svc.cluster.local web-1")}}))
          .value();
  CHECK(found.this_node == 1);
  CHECK(found.master == "web-0.nginx.default.svc.cluster.local");
  CHECK_FALSE(from_stateful_set(facts_of({{"HOSTNAME", "web-1"}})));
  CHECK_FALSE(from_stateful_set(
      facts_of({{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"HOSTNAME", "web-7d4b9c6f-x2x1z"}})));
}

const Texts kTrainJob = {{"PET_NNODES", "4"},
                         {"PET_NPROC_PER_NODE", "2"},
                         {"PET_NODE_RANK", "3"},
                         {"PET_MASTER_ADDR", "pytorch-simple-node-0-0.pytorch-simple"},
                         {"PET_MASTER_PORT", "29500"}};

TEST_CASE("Kubeflow Trainer tells all") {
  const Allocation found = from_kubeflow_trainer(facts_of(kTrainJob)).value();
  CHECK(found.node_count == 4);
  CHECK(found.this_node == 3);
  CHECK(found.master == "pytorch-simple-node-0-0.pytorch-simple");
  CHECK(found.master_port == 29500);
  CHECK(found.workers_per_node == WorkerCount(2));
}

TEST_CASE("Kubeflow Trainer may leave the number of workers to the program") {
  Texts variables = kTrainJob;
  variables["PET_NPROC_PER_NODE"] = "auto";
  CHECK_FALSE(from_kubeflow_trainer(facts_of(variables))->workers_per_node);
  variables["PET_NPROC_PER_NODE"] = "cpu";
  CHECK(from_kubeflow_trainer(facts_of(variables))->workers_per_node == WorkerCount(WorkerCount::Of::cores));
  variables["PET_NPROC_PER_NODE"] = "gpu";
  CHECK(from_kubeflow_trainer(facts_of(variables))->workers_per_node == WorkerCount(WorkerCount::Of::gpus));
  variables["PET_NPROC_PER_NODE"] = "banana";
  CHECK_THROWS_WITH_AS(from_kubeflow_trainer(facts_of(variables)),
                       doctest::Contains("PET_NPROC_PER_NODE is \"banana\", must be"), Error);
  variables["PET_NODE_RANK"] = "4";
  CHECK(error_of([&] { from_kubeflow_trainer(facts_of(variables)); }) ==
        "PET_NODE_RANK is 4, but PET_NNODES gives 4 nodes");
}

TEST_CASE("torch elastic's meeting point is as good as a master") {
  const Allocation found = from_kubeflow_trainer(facts_of({{"PET_NNODES", "2:2"},
                                                           {"PET_RDZV_ENDPOINT", "elastic-worker-0:23456"}}))
                               .value();
  CHECK(found.master == "elastic-worker-0");
  CHECK(found.master_port == 23456);
  CHECK_FALSE(found.this_node);
}

TEST_CASE("an elastic job has a range of nodes") {
  const Allocation found = from_kubeflow_trainer(facts_of({{"PET_NNODES", "2:4"},
                                                           {"PET_RDZV_ENDPOINT", "elastic-worker-0:23456"}}))
                               .value();
  CHECK(found.node_count == 4);
  CHECK(found.least_nodes == 2);
}

Texts pytorch_job(const Texts& others) {
  Texts variables = {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"MASTER_PORT", "23456"}, {"WORLD_SIZE", "3"}};
  for (const auto& [name, value] : others) variables[name] = value;
  return variables;
}

TEST_CASE("a PyTorchJob numbers its pods, and its first pod is the master") {
  const Allocation worker =
      from_pytorch_job(facts_of(pytorch_job({{"RANK", "2"}, {"MASTER_ADDR", "mnist-master-0"}}))).value();
  CHECK(worker.node_count == 3);
  CHECK(worker.this_node == 2);
  CHECK(worker.master == "mnist-master-0");
  CHECK(worker.master_port == 23456);
  const Allocation master =
      from_pytorch_job(facts_of(pytorch_job(
                           {{"RANK", "0"}, {"MASTER_ADDR", "localhost"}, {"HOSTNAME", "mnist-master-0"}})))
          .value();
  CHECK(master.master == "mnist-master-0");
}

TEST_CASE("newer operators count workers in WORLD_SIZE") {
  const Allocation found = from_pytorch_job(facts_of(pytorch_job({{"RANK", "1"},
                                                                  {"WORLD_SIZE", "8"},
                                                                  {"PET_NPROC_PER_NODE", "4"},
                                                                  {"MASTER_ADDR", "mnist-master-0"}})))
                               .value();
  CHECK(found.node_count == 2);
  CHECK(found.workers_per_node == WorkerCount(4));
}

TEST_CASE("RANK and WORLD_SIZE outside of a pod are no PyTorchJob") {
  CHECK_FALSE(from_pytorch_job(facts_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}})));
}

TEST_CASE("Volcano lists the hosts of each kind of task") {
  const std::string hosts = "train-worker-0.train,train-worker-1.train";
  const Allocation found =
      from_volcano(facts_of({{"VC_WORKER_HOSTS", hosts}, {"VC_WORKER_NUM", "2"}, {"VC_TASK_INDEX", "1"}}))
          .value();
  CHECK(test::hosts_of(found) == "train-worker-0.train train-worker-1.train");
  CHECK(found.this_node == 1);
  CHECK(from_volcano(facts_of({{"VC_WORKER_HOSTS", hosts}, {"VK_TASK_INDEX", "0"}}))->this_node == 0);
  const Allocation mixed = from_volcano(facts_of({{"VC_WORKER_HOSTS", hosts},
                                                  {"VC_MASTER_HOSTS", "train-master-0.train"},
                                                  {"VC_TASK_INDEX", "0"},
                                                  {"HOSTNAME", "train-worker-0"}}))
                               .value();
  CHECK(test::hosts_of(mixed) == "train-master-0.train train-worker-0.train train-worker-1.train");
  CHECK(mixed.this_node == 1);
}

TEST_CASE("Volcano's variables that disagree are an error") {
  CHECK(error_of([] {
          from_volcano(facts_of({{"VC_WORKER_HOSTS", "a,b"}, {"VC_WORKER_NUM", "3"}}));
        }) == "VC_WORKER_NUM is 3, but VC_WORKER_HOSTS lists 2 nodes (a, b)");
  CHECK(error_of([] {
          from_volcano(facts_of({{"VC_WORKER_HOSTS", "a,b"}, {"VC_TASK_INDEX", "2"}}));
        }) == "VC_TASK_INDEX is 2, but VC_WORKER_HOSTS lists a, b");
}

Texts paddle(const Texts& others) {
  Texts variables = {{"PADDLE_TRAINERS", "127.0.0.1,127.0.0.2"},
                     {"PADDLE_TRAINER_ID", "0"},
                     {"PADDLE_TRAINERS_NUM", "2"},
                     {"POD_IP", "127.0.0.1"}};
  for (const auto& [name, value] : others) variables[name] = value;
  return variables;
}

TEST_CASE("PaddlePaddle's cloud lists the addresses of the nodes") {
  const Allocation found = from_paddle_cloud(facts_of(paddle({{"TRAINER_PORTS_NUM", "2"}}))).value();
  CHECK(test::hosts_of(found) == "127.0.0.1:2 127.0.0.2:2");
  CHECK(found.this_node == 0);
  CHECK_FALSE(found.start_port);
  CHECK(from_paddle_cloud(facts_of(paddle({{"TRAINER_PORTS_NUM", "2"}, {"PADDLE_PORT", "35789"}})))
            ->start_port == 35789);
  CHECK_FALSE(from_paddle_cloud(facts_of(paddle({{"POD_IP", ""}}))));
  CHECK_FALSE(from_paddle_cloud(facts_of(paddle({{"PADDLE_TRAINERS", ""}}))));
}

TEST_CASE("PaddlePaddle's variables that disagree are an error") {
  CHECK(error_of([] {
          from_paddle_cloud(facts_of(paddle({{"PADDLE_TRAINERS_NUM", "4"}})));
        }) == "PADDLE_TRAINERS_NUM is 4, but PADDLE_TRAINERS lists 2 nodes (127.0.0.1, 127.0.0.2)");
  CHECK(error_of([] {
          from_paddle_cloud(facts_of(paddle({{"PADDLE_TRAINER_ID", "2"}})));
        }) == "PADDLE_TRAINER_ID is 2, but PADDLE_TRAINERS lists 2 nodes (127.0.0.1, 127.0.0.2)");
}

}  // namespace
}  // namespace fleetrun::launch::pods_test
