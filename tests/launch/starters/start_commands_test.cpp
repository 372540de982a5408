#include "launch/starters/start_commands.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/cli/flags/shell_words.h"

namespace fleetrun::launch::start_commands_test {
namespace {

using Lines = std::vector<std::string>;

// The commands for three nodes as lines, each after the nodes that it starts.
Lines commands_of(StartBy starter) {
  const Allocation allocation = {.scheduler = Scheduler::slurm,
                                 .node_count = 3,
                                 .nodes = {{"n1", 8}, {"n2", 8}, {"n3", 8}},
                                 .start_by = starter};
  Lines lines;
  for (const StartCommand& command :
       start_commands(allocation, {"/opt/fleetrun", "--as_agent", "train.py", "--name", "a b"}))
    lines.push_back(fmt::format("{}: {}", fmt::join(command.nodes, " "), quote_words(command.words)));
  return lines;
}

// "man srun" of Slurm 22.05. Cores are not bound, because an agent has those of all its ranks.
TEST_CASE("srun starts all other nodes at once and lets each of them end by itself") {
  CHECK(commands_of(StartBy::srun) ==
        Lines{"1 2: srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --nodelist=n2,n3 --export=ALL "
              "--kill-on-bad-exit=0 --wait=0 --input=all --cpu-bind=none --mpi=none "
              "/opt/fleetrun --as_agent train.py --name 'a b'"});
}

// "man pbsdsh" of OpenPBS and Torque.
TEST_CASE("pbsdsh starts a process on each node of the job") {
  CHECK(commands_of(StartBy::pbsdsh) ==
        Lines{"1 2: pbsdsh -u -- /opt/fleetrun --as_agent train.py --name 'a b'"});
  CHECK_FALSE(forwards_input(StartBy::pbsdsh));
}

// www.ibm.com/docs/en/spectrum-lsf/10.1.0?topic=reference-blaunch
TEST_CASE("blaunch starts each node by itself and without a shell") {
  CHECK(commands_of(StartBy::blaunch) ==
        Lines{"1: blaunch -no-shell n2 /opt/fleetrun --as_agent train.py --name 'a b'",
              "2: blaunch -no-shell n3 /opt/fleetrun --as_agent train.py --name 'a b'"});
}

// "man mpirun" of Open MPI 4.1.
TEST_CASE("mpirun starts a task on each other node, passes the order to all of them, and ends none") {
  CHECK(commands_of(StartBy::mpirun) ==
        Lines{"1 2: mpirun -np 2 --host n2,n3 --map-by ppr:1:node --bind-to none --stdin all "
              "--mca orte_abort_on_non_zero_status 0 /opt/fleetrun --as_agent train.py --name 'a b'"});
}

// "man ssh", "man ssh_config" of OpenSSH 9.2.
TEST_CASE("ssh starts each node by itself, asks nothing, and quotes the words for the shell there") {
  const Lines commands = commands_of(StartBy::ssh);
  REQUIRE(commands.size() == 2);
  CHECK(commands[1] ==
        "2: ssh -T -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=10 "
        "-o ServerAliveCountMax=3 -- n3 'exec /opt/fleetrun --as_agent train.py --name '\\''a b'\\'''");
}

}  // namespace
}  // namespace fleetrun::launch::start_commands_test
