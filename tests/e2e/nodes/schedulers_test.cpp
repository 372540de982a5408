// `fleetrun` without a flag about nodes, in the environment that a scheduler gives to each node.
#include "e2e/nodes/cluster.h"

namespace fleetrun::schedulers_test {
namespace {

// Each rank prints its number, and how many there are.
const Words kProgram = {"--nproc_per_node=2", "--", "/bin/sh", "-c",
                        "echo rank $PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM"};

// A step of srun with a task on each node. The number of the job chooses the port where the nodes meet, so each test has its own.
void set_step(Cluster& cluster, const std::string& nodes) {
  const std::string count = std::to_string(cluster.nodes());
  for (int node = 0; node < cluster.nodes(); ++node) {
    cluster.set(node, "SLURM_JOB_ID", std::to_string(cluster.port()));
    cluster.set(node, "SLURM_STEP_ID", "0");
    cluster.set(node, "SLURM_JOB_NODELIST", nodes);
    cluster.set(node, "SLURM_STEP_NODELIST", nodes);
    cluster.set(node, "SLURM_STEP_NUM_NODES", count);
    cluster.set(node, "SLURM_STEP_NUM_TASKS", count);
    cluster.set(node, "SLURM_STEP_TASKS_PER_NODE", "1(x" + count + ")");
    cluster.set(node, "SLURM_NODEID", std::to_string(node));
    cluster.set(node, "SLURM_PROCID", std::to_string(node));
    cluster.set(node, "SLURM_LOCALID", "0");
  }
}

TEST_CASE("under srun, one run forms without a flag about nodes") {
  Cluster cluster(2);
  set_step(cluster, "127.0.0.[1-2]");
  for (int node = 0; node < 2; ++node) cluster.start_exactly(node, kProgram);
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.log(0, 1) == "rank 1 of 4\n");
  CHECK(cluster.read(1, "log.node1/workerlog.1") == "rank 3 of 4\n");
}

// The program, with a flag that names a file with this text.
Words with_file(const Cluster& cluster, const std::string& flag, const std::string& text) {
  const std::string path = cluster.home() + "/file";
  std::ofstream(path) << text;
  Words words = kProgram;
  words.insert(words.begin(), flag + "=" + path);
  return words;
}

TEST_CASE("--exclude_hosts under srun: the node ends with 0, and the others form the run") {
  Cluster cluster(3);
  set_step(cluster, "127.0.0.[1-3]");
  const Words words = with_file(cluster, "--exclude_hosts", "127.0.0.2\n");
  for (int node = 0; node < 3; ++node) cluster.start_exactly(node, words);
  const std::vector<ChildResult> ends = cluster.ends();
  for (const ChildResult& end : ends) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(ends.at(1).err == "fleetrun: --exclude_hosts leaves out this host, so nothing runs here\n");
  CHECK(contains(ends.at(0).err, "fleetrun: --exclude_hosts leaves out 1 node of 3: 127.0.0.2\n"));
  CHECK(cluster.log(0, 1) == "rank 1 of 4\n");
  CHECK(cluster.read(2, "log.node1/workerlog.0") == "rank 2 of 4\n");
}

TEST_CASE("--topology under srun: ranks follow each other on the nodes of a switch") {
  Cluster cluster(3);
  set_step(cluster, "127.0.0.[1-3]");
  const Words words =
      with_file(cluster, "--topology", "SwitchName=a Nodes=127.0.0.[1,3]\nSwitchName=b Nodes=127.0.0.2\n");
  for (int node = 0; node < 3; ++node) cluster.start_exactly(node, words);
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.log(0, 0) == "rank 0 of 6\n");
  CHECK(cluster.read(2, "log.node1/workerlog.0") == "rank 2 of 6\n");
  CHECK(cluster.read(1, "log.node2/workerlog.0") == "rank 4 of 6\n");
}

TEST_CASE("mpirun in a job of PBS: the node file has the hosts, and each node finds its own address") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(2);
  Cluster cluster(2, &network);
  const std::string file = cluster.home() + "/nodes";
  std::ofstream(file) << cluster.address(0) << "\n"
                      << cluster.address(0) << "\n"
                      << cluster.address(1) << "\n";
  for (int node = 0; node < 2; ++node) {
    cluster.set(node, "PBS_JOBID", "1399.login01");
    cluster.set(node, "PBS_NODEFILE", file);
    cluster.set(node, "OMPI_COMM_WORLD_RANK", std::to_string(node));
    cluster.set(node, "OMPI_COMM_WORLD_SIZE", "2");
    cluster.set(node, "OMPI_COMM_WORLD_LOCAL_RANK", "0");
    cluster.set(node, "OMPI_COMM_WORLD_LOCAL_SIZE", "1");
    cluster.start_exactly(node, kProgram);
  }
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.log(0, 0) == "rank 0 of 4\n");
  CHECK(cluster.read(1, "log.node1/workerlog.0") == "rank 2 of 4\n");
}

// mpirun's agent for other hosts: runs the command in the network of node 1, under a host name of its own.
std::string write_agent(const Cluster& cluster, const Namespaces& network) {
  std::string path = cluster.home() + "/agent";
  std::ofstream(path) << "#!/bin/sh\nshift\nexec";
  std::ofstream file(path, std::ios::app);
  for (const std::string& word : network.in(1, {})) file << " " << word;
  file << " unshare -u /bin/sh -c 'hostname other; exec /bin/sh -c \"$*\"' sh \"$@\"\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST_CASE("a real mpirun starts one run on two hosts, without a flag about nodes") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  if (!has_program("mpirun")) LEAVE_OUT("mpirun is not installed");
  const Namespaces network(2);
  Cluster cluster(2, &network);
  Words command = {"mpirun",
                   "--allow-run-as-root",
                   "--mca",
                   "plm_rsh_agent",
                   write_agent(cluster, network),
                   "-H",
                   cluster.address(0) + "," + cluster.address(1),
                   "--map-by",
                   "ppr:1:node",
                   FLEETRUN_BINARY};
  command.insert(command.end(), kProgram.begin(), kProgram.end());
  const ChildResult end = run_child(network.in(0, command),
                                    {.folder = cluster.folder(0), .environment = {{"HOME", cluster.home()}}});
  CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.log(0, 1) == "rank 1 of 4\n");
  CHECK(cluster.read(0, "log.node1/workerlog.1") == "rank 3 of 4\n");
}

TEST_CASE("pods of an Indexed Job with PADDLE_NNODES form one run") {
  Cluster cluster(2);
  for (int node = 0; node < 2; ++node) {
    cluster.set(node, "JOB_COMPLETION_INDEX", std::to_string(node));
    cluster.set(node, "HOSTNAME", "localhost");  // no pod: the host of the first one is a flag
    cluster.set(node, "PADDLE_NNODES", "2");
    Words words = {"--master=127.0.0.1:" + std::to_string(cluster.port())};
    words.insert(words.end(), kProgram.begin(), kProgram.end());
    cluster.start_exactly(node, words);
  }
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.read(1, "log.node1/workerlog.0") == "rank 2 of 4\n");
}

TEST_CASE("hosts of a file with their slots are nodes with as many workers") {
  Cluster cluster(2);
  const std::string file = cluster.home() + "/hosts";
  std::ofstream(file) << "127.0.0.1 slots=2\n127.0.0.2 slots=1\n";
  for (int node = 0; node < 2; ++node)
    cluster.start_exactly(node, {"--hostfile=" + file, "-np", "3", "--node_rank=" + std::to_string(node),
                                 "--master_port=" + std::to_string(cluster.port()), "--", "/bin/sh", "-c",
                                 "echo rank $PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM"});
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.log(0, 1) == "rank 1 of 3\n");
  CHECK(cluster.log(1, 0) == "rank 2 of 3\n");
}

TEST_CASE(
    "a batch script on several nodes, and one of several tasks on a node, end with 2 and the line to type") {
  Cluster cluster(2);
  set_step(cluster, "127.0.0.[1-2]");
  cluster.set(0, "SLURM_STEP_NODELIST", "");
  cluster.set(1, "SLURM_STEP_TASKS_PER_NODE", "2(x2)");
  for (int node = 0; node < 2; ++node) cluster.start_exactly(node, {"true"});
  for (const ChildResult& end : cluster.ends()) {
    CHECK(end.code == 2);
    CHECK_MESSAGE(contains(end.err, "srun --ntasks-per-node=1 fleetrun ..."), end.err);
  }
}

}  // namespace
}  // namespace fleetrun::schedulers_test
