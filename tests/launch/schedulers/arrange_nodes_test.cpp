#include "launch/schedulers/arrange_nodes.h"

#include <doctest/doctest.h>

#include "launch/cli/command_line.h"
#include "launch/schedulers/facts.h"
#include "launch/schedulers/settle_nodes.h"

namespace fleetrun::launch::arrange_nodes_test {
namespace {

using Words = std::vector<std::string>;
using test::error_of;
using test::Texts;

const Texts kFiles = {{"bad", "# broken on Monday\nn2\n"},
                      {"all", "n[1-4]\n"},
                      {"first", "n1\n"},
                      {"other", "n3 x[1-2]\n"},
                      {"switches", "SwitchName=odd Nodes=n1,n3\nSwitchName=even Nodes=n2,n4\n"},
                      {"hosts", "n1 slots=1\nn2 slots=2\nn3 slots=3\nn4 slots=4\n"}};

struct Settled {
  LaunchOptions options;
  std::optional<Allocation> allocation;
};

Settled settle(Words words, const Texts& variables = {}) {
  words.emplace_back("program");
  const SchedulerFacts facts = test::facts_of(variables, kFiles);
  Settled settled;
  settled.options =
      parse_launch_options(words, facts.environment, CalledAs::fleetrun, {}, [&](LaunchOptions& options) {
        settled.allocation = settle_nodes(options, facts);
      }).options;
  return settled;
}

// Four nodes under srun; this is the node with that number.
Texts slurm_step(const std::string& node) {
  return {{"SLURM_JOB_ID", "4242"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NODELIST", "n[1-4]"},
          {"SLURM_STEP_TASKS_PER_NODE", "1(x4)"},
          {"SLURM_STEP_NUM_TASKS", "4"},
          {"SLURM_NODEID", node},
          {"SLURM_PROCID", node},
          {"SLURM_LOCALID", "0"}};
}

// In the batch script, on n1.
const Texts kBatchScript = {
    {"SLURM_JOB_ID", "4242"}, {"SLURM_JOB_NODELIST", "n[1-4]"}, {"SLURMD_NODENAME", "n1"}};

TEST_CASE("the file may list hosts as Slurm does") {
  CHECK(parse_excluded_hosts("f", "n1 # comment\n\nn[3-4],m\n") == Words{"n1", "n3", "n4", "m"});
  CHECK(error_of([] { parse_excluded_hosts("f", "n1\nn[2\n"); }).starts_with("line 2 of f is "));
}

TEST_CASE("under srun, the other nodes move up when a node is left out") {
  const LaunchOptions last = settle({"--exclude_hosts=bad"}, slurm_step("3")).options;
  CHECK(last.ips.value == "n1,n3,n4");
  CHECK(last.ips.source == "SLURM_STEP_NODELIST without the hosts of --exclude_hosts");
  CHECK(last.node_rank.value == 2);
  CHECK(last.log_dir.value == "log.node2");
  CHECK(last.notes == Words{"--exclude_hosts leaves out 1 node of 4: n2"});
  CHECK(settle({"--exclude_hosts=bad"}, slurm_step("0")).options.node_rank.value == 0);
}

TEST_CASE("a node that is left out knows it") {
  CHECK(settle({"--exclude_hosts=bad"}, slurm_step("1")).allocation->is_left_out);
  CHECK_FALSE(settle({"--exclude_hosts=bad"}, slurm_step("2")).allocation->is_left_out);
}

TEST_CASE("a run without nodes is an error, a host that takes no part is a warning") {
  CHECK(error_of([] { settle({"--exclude_hosts=all"}, slurm_step("0")); }) ==
        "all leaves out all of SLURM_STEP_NODELIST: n1, n2, n3, n4");
  CHECK(settle({"--exclude_hosts=other"}, slurm_step("0")).options.notes ==
        Words{"--exclude_hosts leaves out 1 node of 4: n3",
              "warning: other names x1, x2, which SLURM_STEP_NODELIST does not list"});
}

TEST_CASE("a batch script on a node that is left out cannot start the others") {
  CHECK(settle({"--exclude_hosts=bad"}, kBatchScript).allocation->start_by == StartBy::srun);
  CHECK(
      error_of([] { settle({"--exclude_hosts=first"}, kBatchScript); }) ==
      "first leaves out n1, where this fleetrun has to start the other nodes | let the scheduler leave out this "
      "node: sbatch --exclude does so in Slurm");
}

TEST_CASE("--hosts and --hostfile lose the hosts that are left out, with their slots") {
  const Settled settled = settle({"--hostfile=hosts", "--exclude_hosts=bad", "--topology=switches"});
  CHECK(test::hosts_of(*settled.allocation) == "n1:1 n3:3 n4:4");
  CHECK(settled.options.ips.value == "n1,n3,n4");
  CHECK(settled.options.hosts.value->text == "n1:1,n3:3,n4:4");
  CHECK(settled.options.left_out == Words{"n2"});
}

TEST_CASE("--topology orders the nodes of a scheduler, and each node finds its new place") {
  const Words wanted = {"n1", "n3", "n2", "n4"};
  for (int node = 0; node < 4; ++node) {
    const LaunchOptions options = settle({"--topology=switches"}, slurm_step(std::to_string(node))).options;
    CHECK(options.ips.value == "n1,n3,n2,n4");
    CHECK(options.ips.source == "SLURM_STEP_NODELIST, in the order of --topology");
    CHECK(wanted.at(static_cast<std::size_t>(*options.node_rank.value)) == "n" + std::to_string(node + 1));
  }
}

TEST_CASE("--topology orders --ips, and --node_rank is the place in the list that the user wrote") {
  const LaunchOptions options = settle({"--ips=n1,n2,n3,x", "--topology=switches", "--node_rank=2"}).options;
  CHECK(options.ips.value == "n1,n3,n2,x");
  CHECK(options.node_rank.value == 1);
  CHECK(options.notes == Words{"warning: switches has no switch for x"});
  CHECK(error_of([] {
          settle({"--ips=n1,n2", "--exclude_hosts=bad"});
        }) ==
        "--exclude_hosts is for --hosts, --hostfile and schedulers; --ips lists the nodes | take the address "
        "out of --ips");
}

TEST_CASE("both flags need a list of the nodes") {
  CHECK(error_of([] {
          settle({"--nnodes=2", "--master=n1:6069", "--topology=switches"});
        }) == "--topology needs a list of the nodes: --ips, --hosts, --hostfile or a scheduler");
  CHECK(settle({"--topology=switches"}).options.notes ==
        Words{"--topology has no effect on a run with one node"});
  CHECK(error_of([] {
          settle({"--exclude_hosts=bad"}, {{"OMPI_COMM_WORLD_SIZE", "2"},
                                           {"OMPI_COMM_WORLD_RANK", "0"},
                                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                                           {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}});
        }).starts_with("--exclude_hosts needs the names of the nodes, which "));
}

}  // namespace
}  // namespace fleetrun::launch::arrange_nodes_test
