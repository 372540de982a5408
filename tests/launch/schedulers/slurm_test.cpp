// Environments from public sources:
//   the mailing list "Open MPI Users", a thread about `salloc` and mpirun on node[1-2] (SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE)
//   the output of `srun env` with 16 tasks on adev[2,8-14], a comment above `struct SLURM_Struct` in public MPI benchmarks
//   a bug report of bio-programming-tools with the variables of salloc's interactive step (SLURM_STEP_ID=4294967290 on GPU71E4)
//   slurm.schedmd.com, "sbatch" and "srun", OUTPUT ENVIRONMENT VARIABLES
// The variables of a batch script and of a step agree with those that Slurm 22.05.8 sets on two nodes.
#include <doctest/doctest.h>

#include "launch/schedulers/facts.h"

namespace fleetrun::launch::slurm_test {
namespace {

using test::Texts;

std::optional<Allocation> allocation_of(const Texts& variables) {
  return from_slurm(test::facts_of(variables));
}

Texts with(Texts variables, const Texts& others) {
  for (const auto& [name, value] : others) variables[name] = value;
  return variables;
}

const Texts kStep = {{"SLURM_JOB_ID", "23"},
                     {"SLURM_STEP_ID", "1"},
                     {"SLURM_JOB_NODELIST", "node[1-3]"},
                     {"SLURM_STEP_NODELIST", "node[2-3]"},
                     {"SLURM_STEP_NUM_NODES", "2"},
                     {"SLURM_STEP_NUM_TASKS", "2"},
                     {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                     {"SLURM_NODEID", "1"},
                     {"SLURM_PROCID", "1"},
                     {"SLURM_LOCALID", "0"}};

TEST_CASE("without Slurm's variables there is no allocation") {
  CHECK_FALSE(allocation_of({}));
  CHECK_FALSE(allocation_of({{"SLURM_CONF", "/etc/slurm/slurm.conf"}}));
}

TEST_CASE("a step of srun tells the nodes of the step and the place of this one") {
  const Allocation found = allocation_of(kStep).value();
  CHECK(test::hosts_of(found) == "node2:1 node3:1");
  CHECK(found.found_in == "SLURM_STEP_NODELIST");
  CHECK(found.this_node == 1);
  CHECK(found.started_on_every_node);
  CHECK_FALSE(found.is_one_rank());
  CHECK(found.job_id == "23.1");
  CHECK(found.describe() == "Slurm job 23.1, node 1 of 2 nodes, from SLURM_STEP_NODELIST");
}

TEST_CASE("a batch script runs on the first node only") {
  const Allocation found = allocation_of({{"SLURM_JOB_ID", "4242"},
                                          {"SLURM_JOB_NODELIST", "adev[2,8-14]"},
                                          {"SLURM_JOB_NUM_NODES", "8"},
                                          {"SLURM_TASKS_PER_NODE", "2(x8)"},
                                          {"SLURM_NODEID", "0"},
                                          {"SLURM_PROCID", "0"},
                                          {"SLURM_GPUS_ON_NODE", "4"},
                                          {"SLURM_RESTART_COUNT", "2"}})
                               .value();
  CHECK(found.node_count == 8);
  CHECK(found.nodes.back().host == "adev14");
  CHECK_FALSE(found.started_on_every_node);
  CHECK_FALSE(found.task);
  CHECK(found.restart_count == 2);
  CHECK(found.gpus_on_node == 4);
}

TEST_CASE("the shell of salloc is a step of its own, but no step of the user's") {
  const Allocation found = allocation_of({{"SLURM_JOB_ID", "1720714"},
                                          {"SLURM_JOB_NODELIST", "GPU71E[4-5]"},
                                          {"SLURM_JOB_NUM_NODES", "2"},
                                          {"SLURM_STEP_ID", "4294967290"},
                                          {"SLURM_STEP_NODELIST", "GPU71E4"},
                                          {"SLURM_STEP_NUM_TASKS", "1"},
                                          {"SLURM_STEP_TASKS_PER_NODE", "1"}})
                               .value();
  CHECK(found.found_in == "SLURM_JOB_NODELIST");
  CHECK(test::hosts_of(found) == "GPU71E4 GPU71E5");
  CHECK_FALSE(found.started_on_every_node);
}

TEST_CASE("a batch script that was submitted inside a step inherits that step, which means nothing") {
  Texts variables = kStep;
  variables["SLURM_JOB_ID"] = "24";
  variables["SLURM_JOB_NODELIST"] = "node[7-8]";
  const Allocation found = allocation_of(variables).value();
  CHECK(test::hosts_of(found) == "node7 node8");
  CHECK_FALSE(found.started_on_every_node);
  CHECK(found.job_id == "24");
}

TEST_CASE("several tasks on a node make this process a rank") {
  const Allocation found = allocation_of(with(kStep, {{"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                                                      {"SLURM_STEP_NUM_TASKS", "4"},
                                                      {"SLURM_PROCID", "3"},
                                                      {"SLURM_LOCALID", "1"}}))
                               .value();
  CHECK(found.is_one_rank());
  CHECK(found.task == Task{3, 4, 1, 2, "SLURM_PROCID"});
}

TEST_CASE("a node with one task is part of such a step, too, when another node has two") {
  const Allocation found =
      allocation_of(with(kStep, {{"SLURM_STEP_TASKS_PER_NODE", "2,1"}, {"SLURM_STEP_NUM_TASKS", "3"}}))
          .value();
  CHECK(found.task->local_size == 1);
  CHECK(found.is_one_rank());
}

TEST_CASE("variables that contradict each other are an error that shows both") {
  const auto error = [](const Texts& others) {
    return test::error_of([&] { allocation_of(with(kStep, others)); });
  };
  CHECK(error({{"SLURM_STEP_NUM_NODES", "3"}}) ==
        "SLURM_STEP_NUM_NODES is 3, but SLURM_STEP_NODELIST lists 2 nodes (node2, node3)");
  CHECK(
      error({{"SLURM_STEP_TASKS_PER_NODE", "1(x3)"}}) ==
      "SLURM_STEP_TASKS_PER_NODE is \"1(x3)\", for 3 nodes, but SLURM_STEP_NODELIST lists 2 nodes (node2, node3)");
  CHECK(error({{"SLURM_NODEID", "2"}}) ==
        "SLURM_NODEID is 2, but SLURM_STEP_NODELIST lists 2 nodes (node2, node3)");
  CHECK(error({{"SLURM_NODEID", "-1"}}) ==
        "SLURM_NODEID is \"-1\", must be a whole number between 0 and 65536");
  CHECK(error({{"SLURM_STEP_NODELIST", "node[2-"}}).starts_with("SLURM_STEP_NODELIST is \"node[2-\""));
  CHECK(test::error_of([] {
          allocation_of({{"SLURM_STEP_NODELIST", "n[1-2"}});
        }).starts_with("SLURM_STEP_NODELIST is \"n[1-2\""));
}

}  // namespace
}  // namespace fleetrun::launch::slurm_test
