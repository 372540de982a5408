// PBS and LSF. Environments and files from public sources:
//   gravity-doc.github.io, "Job" (TORQUE-6.0.2, job 1399.login01, PBS_NODEFILE below torque6/share/gr32/aux)
//   the environment of a PBS Professional job at NASA in a report on OpenMDAO-Framework (188691.pbspl1.nas.nasa.gov, PBS_NODENUM=0)
//   the mailing list "Open MPI Users": TORQUE-2.3.13 at PSC, and LSF 7 (LSB_MCPU_HOSTS=grid03 1 grid05 1 grid01 2, job 748)
//   gem5, the script of multi gem5 simulations: LSB_MCPU_HOSTS="hname1 2 hname2 4"
//   IBM Spectrum LSF, "Environment variables set for job execution"; hpc.dtu.dk, "Parallel jobs" of LSF 9.1.3
//   Lightning-AI/pytorch-lightning, tests/tests_fabric/plugins/environments/test_lsf.py (jsrun)
#include <doctest/doctest.h>

#include "launch/schedulers/facts.h"

namespace fleetrun::launch::batch_test {
namespace {

using test::facts_of;
using test::Texts;

TEST_CASE("Torque: the node file has a line per slot") {
  const std::string path = "/opt/tsce4/torque6/share/gr32/aux//1399.login01";
  const Allocation found = from_pbs(facts_of({{"PBS_JOBID", "1399.login01"},
                                              {"PBS_NODEFILE", path},
                                              {"PBS_TASKNUM", "1"},
                                              {"PBS_NODENUM", "0"}},
                                             {{path, "gr32\ngr32\ngr33\ngr33\n"}}))
                               .value();
  CHECK(test::hosts_of(found) == "gr32:2 gr33:2");
  CHECK(found.job_id == "1399.login01");
  CHECK_FALSE(found.started_on_every_node);
  CHECK(found.describe() == "PBS job 1399.login01, 2 nodes, from PBS_NODEFILE");
}

TEST_CASE("PBS Professional: lines with domains, one node") {
  const Allocation found =
      from_pbs(facts_of({{"PBS_JOBID", "188691.pbspl1.nas.nasa.gov"},
                         {"PBS_NODEFILE", "/var/spool/pbs/aux/188691.pbspl1.nas.nasa.gov"}},
                        {{"/var/spool/pbs/aux/188691.pbspl1.nas.nasa.gov",
                          "r301i1n12.ib0.pleiades.nas.nasa.gov\n"}}))
          .value();
  CHECK(found.node_count == 1);
  CHECK(found.nodes.front().host == "r301i1n12.ib0.pleiades.nas.nasa.gov");
}

TEST_CASE("pbsdsh starts a task on every node, and the task manager numbers it") {
  const Allocation found =
      from_pbs(facts_of({{"PBS_NODEFILE", "/nodes"}, {"PBS_TASKNUM", "3"}}, {{"/nodes", "bl0\nbl1\n"}}))
          .value();
  CHECK(found.started_on_every_node);
  CHECK_FALSE(found.this_node);
}

TEST_CASE("node files that are empty, missing or no list of hosts are errors") {
  const auto error = [](const std::string& text) {
    return test::error_of([&] { from_pbs(facts_of({{"PBS_NODEFILE", "/nodes"}}, {{"/nodes", text}})); });
  };
  CHECK(error("") == "PBS_NODEFILE (/nodes) lists no hosts");
  CHECK(error("\n \n") == "PBS_NODEFILE (/nodes) lists no hosts");
  CHECK(error("a$(reboot)\n") == "PBS_NODEFILE (/nodes) has \"a$(reboot)\", which is not a host name");
  CHECK(error(std::string(5 << 20, '\n')) == "PBS_NODEFILE (/nodes) is longer than 4 MiB");
  CHECK(test::error_of([] {
          from_pbs(facts_of({{"PBS_NODEFILE", "/gone"}}));
        }).starts_with("no file /gone | older PBS and Torque write the node file on the first node only;"));
}

TEST_CASE("LSF: hosts with their slots, in pairs or one by one") {
  const Allocation pairs =
      from_lsf(facts_of({{"LSB_JOBID", "748"}, {"LSB_MCPU_HOSTS", "grid03 1 grid05 1 grid01 2"}})).value();
  CHECK(test::hosts_of(pairs) == "grid03:1 grid05:1 grid01:2");
  CHECK(pairs.job_id == "748");
  CHECK_FALSE(pairs.started_on_every_node);
  CHECK(test::hosts_of(from_lsf(facts_of({{"LSB_MCPU_HOSTS", "hname1 2 hname2 4 "}})).value()) ==
        "hname1:2 hname2:4");
  CHECK(test::hosts_of(from_lsf(facts_of({{"LSB_HOSTS", "hostA hostA hostB"}})).value()) ==
        "hostA:2 hostB:1");
  const Allocation file =
      from_lsf(facts_of({{"LSB_DJOB_HOSTFILE", "/f"}, {"LSB_JOBINDEX", "7"}, {"LSB_JOBID", "12"}},
                        {{"/f", "a\na\nb\n"}}))
          .value();
  CHECK(test::hosts_of(file) == "a:2 b:1");
  CHECK(file.job_id == "12[7]");
  CHECK_FALSE(from_lsf(facts_of({})));
}

TEST_CASE("jsrun starts no task on the launch node") {
  const Allocation found =
      from_lsf(facts_of({{"LSB_JOBID", "1234"},
                         {"LSB_DJOB_RANKFILE", "/ranks"},
                         {"JSM_NAMESPACE_SIZE", "4"},
                         {"JSM_NAMESPACE_RANK", "3"},
                         {"JSM_NAMESPACE_LOCAL_RANK", "0"}},
                        {{"/ranks", "batch\n10.10.10.0\n10.10.10.1\n10.10.10.2\n10.10.10.3"}}))
          .value();
  CHECK(test::hosts_of(found) == "10.10.10.0:1 10.10.10.1:1 10.10.10.2:1 10.10.10.3:1");
  CHECK(found.started_on_every_node);
  CHECK(found.task->rank == 3);
  CHECK_FALSE(found.is_one_rank());
}

TEST_CASE("LSF's variables that make no sense, or disagree, are errors") {
  const auto error = [](const Texts& variables) {
    return test::error_of([&] { from_lsf(facts_of(variables)); });
  };
  CHECK(error({{"LSB_MCPU_HOSTS", "a 2 b"}}) ==
        "LSB_MCPU_HOSTS has no number of slots after \"b\"; it must be like \"host1 2 host2 4\"");
  CHECK(error({{"LSB_MCPU_HOSTS", "a 2000000000"}}).find("no number of slots after \"a\"") !=
        std::string::npos);
  CHECK(error({{"LSB_MCPU_HOSTS", "a 2 b 2"}, {"LSB_HOSTS", "a a c c"}}) ==
        "LSB_MCPU_HOSTS lists a, b, but LSB_HOSTS lists a, c");
}

}  // namespace
}  // namespace fleetrun::launch::batch_test
