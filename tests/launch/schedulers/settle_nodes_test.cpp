#include "launch/schedulers/settle_nodes.h"

#include <doctest/doctest.h>

#include "launch/cli/command_line.h"
#include "launch/schedulers/facts.h"

namespace fleetrun::launch::settle_nodes_test {
namespace {

using test::error_of;
using test::Texts;

struct Settled {
  LaunchOptions options;
  std::optional<Allocation> allocation;
};

Settled settle(std::vector<std::string> words, const Texts& variables, const Texts& files = {}) {
  words.emplace_back("program");
  const SchedulerFacts facts = test::facts_of(variables, files);
  Settled settled;
  settled.options =
      parse_launch_options(words, facts.environment, CalledAs::fleetrun, {}, [&](LaunchOptions& options) {
        settled.allocation = settle_nodes(options, facts);
      }).options;
  return settled;
}

std::string start_error(const std::vector<std::string>& words, const Texts& variables,
                        const Texts& files = {}) {
  const Settled settled = settle(words, variables, files);
  return error_of([&] { check_can_start(settled.options, settled.allocation); });
}

Texts slurm_step(const Texts& others = {}) {
  Texts variables = {{"SLURM_JOB_ID", "4242"},
                     {"SLURM_STEP_ID", "0"},
                     {"SLURM_STEP_NODELIST", "n[1-2]"},
                     {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                     {"SLURM_STEP_NUM_TASKS", "2"},
                     {"SLURM_NODEID", "1"},
                     {"SLURM_PROCID", "1"},
                     {"SLURM_LOCALID", "0"}};
  for (const auto& [name, value] : others) variables[name] = value;
  return variables;
}

TEST_CASE("under srun the nodes, the place, the port and the log folder need no flag") {
  const LaunchOptions options = settle({}, slurm_step()).options;
  CHECK(options.ips.value == "n1,n2");
  CHECK(options.ips.source == "SLURM_STEP_NODELIST");
  CHECK(options.node_rank.value == 1);
  CHECK(options.master_port.value == 19242);
  CHECK(options.master_port.source == "SLURM_JOB_ID");
  CHECK(options.log_dir.value == "log.node1");
  CHECK(options.scheduler.value == "slurm");
  CHECK(options.scheduler.source == "Slurm job 4242.0, node 1 of 2 nodes, from SLURM_STEP_NODELIST");
  CHECK(settle({}, slurm_step({{"SLURM_NODEID", "0"}})).options.log_dir.value == "log");
}

TEST_CASE("flags win over what was recognised") {
  const Settled listed = settle({"--ips=10.0.0.1,10.0.0.2"}, slurm_step());
  CHECK_FALSE(listed.allocation);
  CHECK_FALSE(listed.options.node_rank.value);
  CHECK_FALSE(settle({"--nnodes=1"}, slurm_step()).allocation);
  CHECK_FALSE(settle({"--standalone"}, slurm_step()).allocation);
  CHECK_FALSE(settle({"--scheduler=none"}, slurm_step()).allocation);
  const LaunchOptions own = settle({"--master_port=7000", "--log_dir=mine"}, slurm_step()).options;
  CHECK(own.master_port.value == 7000);
  CHECK(own.log_dir.value == "mine");
  CHECK(own.ips.value == "n1,n2");
}

TEST_CASE("a node whose place its addresses tell gets its log folder when the place is known") {
  LaunchOptions options;
  use_own_log_folder(options, 0, "PBS_NODEFILE");
  CHECK(options.log_dir.value == "log");
  use_own_log_folder(options, 3, "PBS_NODEFILE");
  CHECK(options.log_dir.value == "log.node3");
  use_own_log_folder(options, 4, "PBS_NODEFILE");
  CHECK(options.log_dir.value == "log.node3");
}

TEST_CASE("fleetrun called as torchrun starts one node, as torchrun does") {
  const SchedulerFacts facts = test::facts_of(slurm_step());
  std::optional<Allocation> allocation;
  parse_launch_options({"train.py"}, facts.environment, CalledAs::torchrun, {},
                       [&](LaunchOptions& options) { allocation = settle_nodes(options, facts); });
  CHECK_FALSE(allocation);
}

TEST_CASE("a number of nodes that differs from the scheduler's is an error that shows both") {
  CHECK(
      error_of([] { settle({"--nnodes=3"}, slurm_step()); }) ==
      "--nnodes is 3, but SLURM_STEP_NODELIST gives 2 nodes | --scheduler=none ignores what the scheduler says");
  CHECK(settle({"--nnodes=2"}, slurm_step()).options.ips.value == "n1,n2");
}

TEST_CASE("one node is what it was without a scheduler") {
  const Settled one =
      settle({}, {{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", "n1"}, {"SLURM_JOB_NUM_NODES", "1"}});
  CHECK(one.options.ips.origin == Origin::fallback);
  CHECK_FALSE(one.options.master_port.value);
  CHECK(one.options.log_dir.value == "log");
  CHECK(start_error({}, {{"SLURM_JOB_NODELIST", "n1"}, {"SLURM_NTASKS", "8"}}) == "no error");
}

TEST_CASE("a batch script on several nodes says how to start the others") {
  CHECK(
      start_error({}, {{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", "n[1-3]"}}) ==
      "SLURM_JOB_NODELIST lists 3 nodes (n1, n2, n3), but nothing started this fleetrun on all of them | type srun --ntasks-per-node=1 fleetrun ...; with --start_by=none you start it on each node; --nnodes=1 runs on this host alone");
  CHECK(start_error({"--nnodes=1"}, {{"SLURM_JOB_NODELIST", "n[1-3]"}}) == "no error");
}

TEST_CASE("in the batch script of Slurm srun starts the other nodes, and this one is node 0") {
  const Texts script = {
      {"SLURM_JOB_ID", "4242"}, {"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURMD_NODENAME", "n1"}};
  const Settled settled = settle({}, script);
  CHECK(settled.allocation->start_by == StartBy::srun);
  CHECK(settled.options.ips.value == "n1,n2,n3");
  CHECK(settled.options.node_rank.value == 0);
  CHECK(settled.options.master_port.value == 19242);
  CHECK(settled.options.log_dir.value == "log");
  CHECK(start_error({}, script) == "no error");
  CHECK(settle({"--start_by=ssh"}, script).allocation->start_by == StartBy::ssh);
  CHECK(settle({}, slurm_step()).allocation->start_by == StartBy::none);
}

TEST_CASE(
    "hunt 131: with --start_by=none in a job, each node that the user starts finds its place by its addresses") {
  const Texts script = {{"SLURM_JOB_ID", "4242"},
                        {"SLURM_JOB_NODELIST", "n[1-3]"},
                        {"SLURMD_NODENAME", "n1"},
                        {"SLURM_NODEID", "0"}};
  const Settled settled = settle({"--start_by=none"}, script);
  CHECK(settled.allocation->start_by == StartBy::none);
  CHECK(settled.options.ips.value == "n1,n2,n3");
  CHECK_FALSE(settled.options.node_rank.value);
  CHECK(settled.options.master_port.value == 19242);
  CHECK(start_error({"--start_by=none"}, script) == "no error");
  CHECK(settle({"--start_by=none", "--master=n1:7000"}, script).options.nnodes.value == NodeRange{3, 3});
  CHECK(start_error({"--start_by=none"}, {{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", "n1"}}) ==
        "no error");
}

TEST_CASE("in a shell of salloc that is on no node of the job nothing starts the nodes") {
  const Texts shell = {{"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", "n[1-3]"}};
  CHECK(settle({}, shell).allocation->start_by == StartBy::none);
}

TEST_CASE("in jobs of PBS and LSF their own programs start the other nodes") {
  const Texts pbs = {{"PBS_NODEFILE", "nodes"}, {"PBS_JOBID", "7.server"}};
  CHECK(settle({}, pbs, {{"nodes", "n1\nn2\n"}}).allocation->start_by == StartBy::pbsdsh);
  const Settled lsf = settle({}, {{"LSB_MCPU_HOSTS", "n1 4 n2 4"}, {"LSB_JOBID", "8"}});
  CHECK(lsf.allocation->start_by == StartBy::blaunch);
  CHECK(lsf.options.ips.value == "n1,n2");
}

TEST_CASE("the user starts the hosts of a list unless --start_by names a program") {
  CHECK(settle({"--hosts=a,b"}, {}).allocation->start_by == StartBy::none);
  CHECK_FALSE(settle({"--hosts=a,b"}, {}).options.node_rank.value);
  const Settled by_ssh = settle({"--hosts=a,b", "--start_by=ssh"}, {});
  CHECK(by_ssh.allocation->start_by == StartBy::ssh);
  CHECK(by_ssh.options.node_rank.value == 0);
  CHECK(by_ssh.options.ips.value == "a,b");
}

TEST_CASE("an agent takes the same nodes as the fleetrun that starts it") {
  const Settled first =
      settle({"--start_by=ssh"},
             {{"SLURM_JOB_ID", "4242"}, {"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURMD_NODENAME", "n1"}});
  Allocation allocation = *first.allocation;
  allocation.this_node = 2;
  LaunchOptions options;
  take_nodes(options, allocation);
  CHECK(options.ips.value == first.options.ips.value);
  CHECK(options.master_port.value == first.options.master_port.value);
  CHECK(options.scheduler.value == first.options.scheduler.value);
  CHECK(options.node_rank.value == 2);
  CHECK(options.log_dir.value == "log.node2");
}

TEST_CASE("one of several tasks of a node is told to be the only one") {
  CHECK(
      start_error({}, slurm_step({{"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                                  {"SLURM_STEP_NUM_TASKS", "8"},
                                  {"SLURM_PROCID", "5"}})) ==
      "Slurm started this fleetrun as task 5 of 8, and several of them on one node; fleetrun needs one task on each node and starts the ranks itself (SLURM_PROCID) | srun --ntasks-per-node=1 fleetrun ...");
}

TEST_CASE("under srun --mpi=pmi2 and --mpi=pmix the line to type is one of srun") {
  const Texts step = slurm_step({{"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}, {"SLURM_STEP_NUM_TASKS", "8"}});
  for (const Texts& mpi : {Texts{{"PMIX_RANK", "1"}}, Texts{{"PMI_RANK", "1"}, {"PMI_SIZE", "8"}}}) {
    Texts variables = mpi;
    variables.insert(step.begin(), step.end());
    CHECK(
        start_error({}, variables) ==
        "Slurm started this fleetrun as task 1 of 8, and several of them on one node; fleetrun needs one task on each node and starts the ranks itself (SLURM_PROCID) | srun --ntasks-per-node=1 fleetrun ...");
  }
}

TEST_CASE("a task of pbsdsh without a node file does not train alone") {
  const Texts task = {{"PBS_JOBID", "7.server"}, {"PBS_TASKNUM", "3"}};
  CHECK(
      start_error({}, task) ==
      "PBS started this fleetrun as a task of its job (PBS_TASKNUM), but PBS_NODEFILE is not set, so nothing tells the other nodes | start fleetrun on the first node, which starts the others; or give --master, --nnodes and --node_rank; --nnodes=1 runs on this host alone");
  CHECK(start_error({"--nnodes=1"}, task) == "no error");
  CHECK(start_error({"--master=n1:7000", "--nnodes=3", "--node_rank=2"}, task) == "no error");
  CHECK(start_error({"--master=n1:7000", "--nnodes=3"}, task) == "no error");
  CHECK(start_error({"--ips=n1,n2"}, task) == "no error");
  CHECK(start_error({}, {{"PBS_JOBID", "7.server"}, {"PBS_TASKNUM", "1"}}) == "no error");
  CHECK(start_error({}, {{"PBS_TASKNUM", "3"}}) == "no error");
}

TEST_CASE("the tasks of mpirun in PBS need no node file if the user names the first host") {
  const Texts mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                     {"OMPI_COMM_WORLD_SIZE", "2"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                     {"PBS_JOBID", "7.server"},
                     {"PBS_TASKNUM", "3"}};
  const Settled settled = settle({"--master=n1:7000"}, mpi);
  CHECK(settled.allocation->scheduler == Scheduler::open_mpi);
  CHECK(settled.options.nnodes.value == NodeRange{2, 2});
  Texts with_lost_file = mpi;
  with_lost_file["PBS_NODEFILE"] = "/gone";
  CHECK(
      error_of([&] { settle({"--master=n1:7000"}, with_lost_file); }) ==
      "no file /gone | older PBS and Torque write the node file on the first node only; give --master, --nnodes and --node_rank, or under mpirun --master and --scheduler=openmpi");
  CHECK(settle({"--master=n1:7000", "--scheduler=openmpi"}, with_lost_file).options.node_rank.value == 1);
}

TEST_CASE("MPI without a batch system needs the host of the first task") {
  const Texts mpi = {
      {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
  CHECK(
      start_error({}, mpi) ==
      "Open MPI started 2 tasks, but does not say on which hosts | --master=HOST:PORT names the host of task 0; inside a job of Slurm, PBS or LSF it is known");
  const LaunchOptions options = settle({"--master=n1:7000"}, mpi).options;
  CHECK(options.nnodes.value == NodeRange{2, 2});
  CHECK(options.node_rank.value == 1);
  CHECK(start_error({"--master=n1:7000"}, mpi) == "no error");
}

TEST_CASE("pods with an index need the number of pods") {
  const Texts pod = {{"JOB_COMPLETION_INDEX", "1"}, {"HOSTNAME", "train-1"}};
  CHECK(start_error({}, pod).find(
            "JOB_COMPLETION_INDEX is 1, but nothing says how many nodes the run has | ") == 0);
  Texts counted = pod;
  counted["PADDLE_NNODES"] = "4";
  const LaunchOptions options = settle({}, counted).options;
  CHECK(options.nnodes.value == NodeRange{4, 4});
  CHECK(options.node_rank.value == 1);
  CHECK(options.master_addr.value == "train-0");
  CHECK(start_error({}, counted) == "no error");
  CHECK(error_of([&] { settle({"--nnodes=1"}, pod); }) == "no error");
}

TEST_CASE("PaddlePaddle's cloud gives the nodes and the ports of the ranks") {
  const LaunchOptions options = settle({}, {{"PADDLE_TRAINERS", "10.0.0.1,10.0.0.2"},
                                            {"PADDLE_TRAINER_ID", "1"},
                                            {"POD_IP", "10.0.0.2"},
                                            {"PADDLE_PORT", "35789"},
                                            {"TRAINER_PORTS_NUM", "2"}})
                                    .options;
  CHECK(options.ips.value == "10.0.0.1,10.0.0.2");
  CHECK(options.node_rank.value == 1);
  CHECK(options.start_port.value == 35789);
}

TEST_CASE("a pod that is the only one gets its number of workers and their ports, too") {
  const Texts train_job = {{"PET_NNODES", "1"},
                           {"PET_NODE_RANK", "0"},
                           {"PET_MASTER_ADDR", "localhost"},
                           {"PET_MASTER_PORT", "29400"},
                           {"PET_NPROC_PER_NODE", "2"}};
  const LaunchOptions options = settle({}, train_job).options;
  CHECK(options.nproc_per_node.value == WorkerCount(2));
  CHECK(options.nproc_per_node.source == "PET_NPROC_PER_NODE");
  CHECK_FALSE(options.nnodes.value);
  CHECK_FALSE(options.master_port.value);
  CHECK(settle({"--nproc_per_node=3"}, train_job).options.nproc_per_node.value == WorkerCount(3));
  CHECK(settle({}, {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
                    {"MASTER_ADDR", "localhost"},
                    {"MASTER_PORT", "23456"},
                    {"WORLD_SIZE", "4"},
                    {"RANK", "0"},
                    {"PET_NPROC_PER_NODE", "4"}})
            .options.nproc_per_node.value == WorkerCount(4));
  CHECK(settle({}, {{"PADDLE_TRAINERS", "10.0.0.1"},
                    {"PADDLE_TRAINER_ID", "0"},
                    {"POD_IP", "10.0.0.1"},
                    {"PADDLE_PORT", "35789"},
                    {"TRAINER_PORTS_NUM", "2"}})
            .options.start_port.value == 35789);
}

TEST_CASE("a StatefulSet is believed when several nodes were asked for") {
  const Texts pod = {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"HOSTNAME", "web-1"}};
  CHECK_FALSE(settle({}, pod).allocation);
  CHECK(settle({"--nnodes=3"}, pod).options.master_addr.value == "web-0");
  CHECK_FALSE(settle({"--nnodes=3", "--master=a:1"}, pod).options.node_rank.value);
}

TEST_CASE("several hosts of --hosts or --hostfile are the nodes") {
  const LaunchOptions options = settle({"--hosts=a:4,b:2"}, {}).options;
  CHECK(options.ips.value == "a,b");
  CHECK(options.ips.source == "--hosts");
  const LaunchOptions file =
      settle({"--hostfile=/hosts"}, {}, {{"/hosts", "a slots=4\nb:2 # rack 7\n"}}).options;
  CHECK(file.ips.value == "a,b");
  CHECK(file.hosts.value->hosts.at(1).slots == 2);
  CHECK(settle({"--hosts=localhost:4"}, {}).options.ips.origin == Origin::fallback);
  CHECK_FALSE(settle({"--hosts=a:4,b:2"}, slurm_step()).options.node_rank.value);
}

TEST_CASE("lists of hosts that contradict each other are an error") {
  CHECK(error_of([] {
          settle({"--hosts=a,b", "--hostfile=/hosts"}, {});
        }) == "--hosts and --hostfile both list the hosts");
  CHECK(error_of([] {
          settle({"--hosts=a,b", "--ips=a,b,c"}, {});
        }) == "--ips is a,b,c, but --hosts lists a, b");
  CHECK(error_of([] { settle({"--scheduler=slurm"}, {}); }) ==
        "--scheduler is slurm, but no variable of slurm is set");
}

TEST_CASE("--show_config tells which scheduler was recognised, and from what") {
  const SchedulerFacts facts = test::facts_of(slurm_step());
  const CommandLine line =
      parse_launch_options({"--show_config"}, facts.environment, CalledAs::fleetrun, {},
                           [&](LaunchOptions& options) { settle_nodes(options, facts); });
  CHECK(line.answer->find("Slurm job 4242.0, node 1 of 2 nodes, from SLURM_STEP_NODELIST") !=
        std::string::npos);
  CHECK(line.answer->find("SLURM_JOB_ID") != std::string::npos);
}

}  // namespace
}  // namespace fleetrun::launch::settle_nodes_test
