// MPI launchers, and what happens where several systems speak. Sources of the variables: docs.open-mpi.org, "Environment variables set
// by mpirun"; the mailing list "Open MPI Users" (mpirun of 4 tasks on 2 nodes); MPICH's wiki on Hydra; Intel MPI's variables
// MPI_LOCALRANKID and MPI_LOCALNRANKS as ParaStation/psmgmt sets them; `srun --mpi=pmix` at Stanford (PMIX_NAMESPACE=slurm.pmix.17552256.0).
#include "launch/schedulers/recognise.h"

#include <doctest/doctest.h>

#include <set>

#include "launch/cli/flags/launch_flags.h"
#include "launch/schedulers/facts.h"

namespace fleetrun::launch::recognise_test {
namespace {

using test::error_of;
using test::facts_of;
using test::Texts;

std::optional<Allocation> find(const Texts& variables, const std::string& word = "auto",
                               const Texts& files = {}) {
  return recognise(facts_of(variables, files), word);
}

const Texts kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "2"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};

Texts both(Texts one, const Texts& other) {
  one.insert(other.begin(), other.end());
  return one;
}

TEST_CASE("an MPI launcher tells the number of nodes and the place, but no hosts") {
  const Allocation found = find(kOpenMpi).value();
  CHECK(found.scheduler == Scheduler::open_mpi);
  CHECK(found.node_count == 2);
  CHECK(found.this_node == 1);
  CHECK(found.nodes.empty());
  const Allocation hydra =
      find({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "1"}, {"MPI_LOCALRANKID", "0"}})
          .value();
  CHECK(hydra.scheduler == Scheduler::hydra);
  CHECK(hydra.node_count == 4);
  CHECK(hydra.this_node == 3);
}

TEST_CASE("Open MPI 4 tells its daemons the address of mpirun, where the nodes can meet") {
  Texts variables = kOpenMpi;
  variables["OMPI_MCA_orte_hnp_uri"] =
      "195559424.0;tcp://198.177.146.70:53997;tcp://10.10.10.4:53997;tcp://172.23.10.1:53997";
  variables["OMPI_MCA_ess_base_jobid"] = "195559425";
  CHECK(find(variables)->master == "198.177.146.70");
  CHECK(find(variables)->job_id == "195559425");
  variables["OMPI_MCA_orte_hnp_uri"] = "648019968.0;tcp://10.0.0.1,172.17.0.1:59025;tcp6://[fd00::1]:51423";
  CHECK(find(variables)->master == "10.0.0.1");
  variables["OMPI_MCA_orte_hnp_uri"] = "none";
  CHECK(find(variables)->master.empty());
}

TEST_CASE("several MPI tasks on a node are ranks") {
  Texts variables = kOpenMpi;
  variables["OMPI_COMM_WORLD_SIZE"] = "4";
  variables["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  CHECK(find(variables)->is_one_rank());
  CHECK(find({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}})->is_one_rank());
  CHECK_FALSE(
      find(
          {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}})
          ->is_one_rank());
}

TEST_CASE("the hosts of the batch system and the tasks of the MPI launcher in it make a whole") {
  const Texts pbs = {{"PBS_NODEFILE", "/nodes"}, {"PBS_TASKNUM", "1"}};
  const Allocation found = find(both(kOpenMpi, pbs), "auto", {{"/nodes", "a\nb\n"}}).value();
  CHECK(found.scheduler == Scheduler::pbs);
  CHECK(found.started_on_every_node);
  CHECK(found.task->rank == 1);
  CHECK_FALSE(found.this_node);
  CHECK(
      error_of([&] {
        find(both(kOpenMpi, pbs), "auto", {{"/nodes", "a\nb\nc\n"}});
      }) ==
      "OMPI_COMM_WORLD_SIZE is 2, but PBS_NODEFILE gives 3 nodes (a, b, c) | start one task on each node: mpirun --map-by ppr:1:node (Open MPI), mpiexec -ppn 1 (MPICH)");
}

TEST_CASE("srun with PMIx is a step of Slurm") {
  const Allocation found = find({{"SLURM_JOB_ID", "17552256"},
                                 {"SLURM_STEP_ID", "0"},
                                 {"SLURM_STEP_NODELIST", "sh04-14n[01-02]"},
                                 {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                 {"SLURM_NODEID", "1"},
                                 {"PMIX_NAMESPACE", "slurm.pmix.17552256.0"},
                                 {"PMIX_RANK", "1"}})
                               .value();
  CHECK(found.scheduler == Scheduler::slurm);
  CHECK(found.started_on_every_node);
  CHECK_FALSE(found.is_one_rank());
}

TEST_CASE("several tasks of srun on a node are Slurm's, also if Slurm speaks PMIx or PMI to them") {
  const Texts step = {{"SLURM_JOB_ID", "7"},         {"SLURM_STEP_ID", "0"},
                      {"SLURM_STEP_NODELIST", "n1"}, {"SLURM_STEP_TASKS_PER_NODE", "4"},
                      {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NODEID", "0"},
                      {"SLURM_PROCID", "1"},         {"SLURM_LOCALID", "1"}};
  for (const Texts& mpi : {Texts{{"PMIX_RANK", "1"}}, Texts{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}}) {
    const Allocation found = find(both(step, mpi)).value();
    CHECK(found.is_one_rank());
    CHECK(found.task == Task{1, 4, 1, 4, "SLURM_PROCID"});
  }
  Texts two_nodes = step;
  two_nodes["SLURM_STEP_NODELIST"] = "n[1-2]";
  two_nodes["SLURM_STEP_TASKS_PER_NODE"] = "4(x2)";
  two_nodes["SLURM_STEP_NUM_TASKS"] = "8";
  CHECK(find(both(two_nodes, {{"PMI_RANK", "1"}, {"PMI_SIZE", "8"}}))->task ==
        Task{1, 8, 1, 4, "SLURM_PROCID"});
  CHECK(
      error_of([&] {
        find(both(step, {{"PMI_RANK", "1"}, {"PMI_SIZE", "8"}}));
      }) ==
      "PMI_SIZE is 8, but SLURM_STEP_NODELIST gives 1 node (n1) | start one task on each node: srun --ntasks-per-node=1 fleetrun ...");
}

TEST_CASE("mpirun in a job of Slurm reaches all nodes of the job, also from the step of its daemons") {
  // Open MPI starts its daemons on n2 and n3 with one srun. Their ranks inherit the variables of this step.
  const Texts daemons = {{"SLURM_JOB_ID", "1"},
                         {"SLURM_JOB_NODELIST", "n[1-3]"},
                         {"SLURM_STEP_ID", "4"},
                         {"SLURM_STEP_NODELIST", "n[2-3]"},
                         {"SLURM_STEP_NUM_NODES", "2"},
                         {"SLURM_STEP_NUM_TASKS", "2"},
                         {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                         {"SLURM_NODEID", "0"},
                         {"SLURM_PROCID", "0"}};
  Texts mpi = kOpenMpi;
  mpi["OMPI_COMM_WORLD_SIZE"] = "3";
  const Allocation found = find(both(mpi, daemons)).value();
  CHECK(found.found_in == "SLURM_JOB_NODELIST");
  CHECK(test::hosts_of(found) == "n1 n2 n3");
  CHECK(found.started_on_every_node);
  CHECK(found.task->rank == 1);
  CHECK_FALSE(found.this_node);
  CHECK_FALSE(found.is_one_rank());
  // So all nodes meet at one port.
  CHECK(found.job_id == find(both(mpi, {{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", "n[1-3]"}}))->job_id);
}

TEST_CASE("mpirun inside a step of Slurm that fits it stays on the nodes of the step") {
  const Texts step = {{"SLURM_JOB_ID", "1"},
                      {"SLURM_JOB_NODELIST", "n[1-3]"},
                      {"SLURM_STEP_ID", "4"},
                      {"SLURM_STEP_NODELIST", "n[2-3]"},
                      {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                      {"SLURM_NODEID", "0"}};
  const Allocation found = find(both(kOpenMpi, step)).value();
  CHECK(test::hosts_of(found) == "n2:1 n3:1");
  CHECK(found.job_id == "1.4");
}

TEST_CASE("PMIx alone does not tell how many tasks there are") {
  const Allocation found = find({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "1839595521"}}).value();
  CHECK(found.scheduler == Scheduler::pmix);
  CHECK(found.node_count == 0);
}

const Texts kTwoSystems = {{"PADDLE_TRAINERS", "10.0.0.1,10.0.0.2"},
                           {"PADDLE_TRAINER_ID", "0"},
                           {"POD_IP", "10.0.0.1"},
                           {"SLURM_JOB_NODELIST", "n[1-3]"}};

TEST_CASE("systems that disagree are an error that shows both, and a flag chooses one") {
  CHECK(
      error_of([] { find(kTwoSystems); }) ==
      "PADDLE_TRAINERS gives 2 nodes (10.0.0.1, 10.0.0.2), but SLURM_JOB_NODELIST gives 3 nodes (n1, n2, n3) | --scheduler=paddle or --scheduler=slurm says which of them to follow; --scheduler=none follows neither");
  CHECK(find(kTwoSystems, "slurm")->node_count == 3);
  CHECK(find(kTwoSystems, "paddle")->node_count == 2);
  CHECK_FALSE(find(kTwoSystems, "none"));
  CHECK(error_of([] {
          find({{"PET_NNODES", "2"},
                {"PET_NODE_RANK", "0"},
                {"PET_MASTER_ADDR", "a"},
                {"JOB_COMPLETION_INDEX", "1"}});
        }).find("PET_NODE_RANK says that this is node 0, but JOB_COMPLETION_INDEX says node 1 | ") == 0);
}

TEST_CASE("systems that agree are no error, and the first in order speaks") {
  Texts variables = kTwoSystems;
  variables["SLURM_JOB_NODELIST"] = "n[1-2]";
  CHECK(find(variables)->scheduler == Scheduler::paddle_cloud);
}

TEST_CASE("a rank of another run inherits variables that are not meant for it") {
  for (const char* mark : {"PADDLE_RANK_IN_NODE", "TORCHELASTIC_RUN_ID"}) {
    Texts variables = kOpenMpi;
    variables[mark] = "0";
    CHECK_FALSE(find(variables));
  }
}

TEST_CASE("a job's port is the same on all nodes, and differs from those of its neighbours") {
  CHECK(port_of_job("4242") == 19242);
  CHECK(port_of_job("1399.login01") == port_of_job("1399.login01"));
  std::set<std::uint16_t> ports;
  for (int job = 1234567; job < 1234567 + 2000; ++job)
    for (const char* step : {".0", ".1", ".2"}) {
      const std::uint16_t port = port_of_job(std::to_string(job) + step).value();
      CHECK((port >= 15000 && port < 25000));
      ports.insert(port);
    }
  CHECK(ports.size() == 6000);
  CHECK_FALSE(port_of_job(""));
  CHECK(port_of_job(std::string(1000, '9')).has_value());
}

TEST_CASE("--scheduler knows every system") {
  LaunchOptions options;
  const std::vector<Flag> table = launch_flags(options);
  const std::vector<std::string>& words = flag_called(table, "--scheduler")->choices;
  for (int one = static_cast<int>(Scheduler::paddle_cloud); one <= static_cast<int>(Scheduler::kubernetes);
       ++one)
    CHECK(std::find(words.begin(), words.end(), word_of(static_cast<Scheduler>(one))) != words.end());
}

}  // namespace
}  // namespace fleetrun::launch::recognise_test
