// Files from public sources:
//   Open MPI's manual of mpirun, "Limits to oversubscription" (aa, bb, cc)
//   the mailing list "Open MPI Users" (node0 to node3; machinefile with x1 and x2)
//   horovod/horovod, docs/running.rst ("host1 slots=2"); MPICH's wiki on Hydra ("donner:2")
#include "launch/schedulers/host_file.h"

#include <doctest/doctest.h>

#include "launch/schedulers/facts.h"

namespace fleetrun::launch::host_file_test {
namespace {

std::string read(const std::string& text) {
  Allocation allocation;
  allocation.nodes = parse_host_file("hosts", text);
  return test::hosts_of(allocation);
}

std::string error_in(const std::string& text) {
  return test::error_of([&] { read(text); });
}

TEST_CASE("the files of mpirun, horovodrun and mpiexec are understood") {
  CHECK(read("aa slots=4 max_slots=4\nbb         max_slots=4\ncc slots=4\n") == "aa:4 bb:4 cc:4");
  CHECK(read("node0\nnode1 slots=2 max_slots=2\nnode2 slots=2 max_slots=2\nnode3 slots=4 max_slots=4\n") ==
        "node0 node1:2 node2:2 node3:4");
  CHECK(read("host1 slots=2\nhost2 slots=2") == "host1:2 host2:2");
  CHECK(read("donner:2\nfoo:3 binding=user:0\n") == "donner:2 foo:3");
  CHECK(read("\n# two racks\r\n  x1  slots=4 # left\r\nx2\tcount=4\r\n") == "x1:4 x2:4");
  CHECK(read("a slots = 4\nb max-slots =2 user=me\n") == "a:4 b:2");
  CHECK(read("[fd00::1]:2\nfd00::2\n") == "fd00::1:2 fd00::2");
}

TEST_CASE("a host that is listed again gets more slots") {
  CHECK(read("a\na\nb\n") == "a:2 b");
  CHECK(read("a slots=2\nb\na slots=2\n") == "a:4 b");
}

TEST_CASE("errors name the line") {
  CHECK(error_in("") == "hosts lists no hosts");
  CHECK(error_in("# none\n\n") == "hosts lists no hosts");
  CHECK(error_in("a slots=none\n") ==
        "line 1 of hosts has \"none\" as the number of slots, must be between 1 and 65536");
  CHECK(error_in("a\nb slots=0\n") ==
        "line 2 of hosts has \"0\" as the number of slots, must be between 1 and 65536");
  CHECK(error_in("a\n^b\n") == "line 2 of hosts has \"^b\", which is not a host name");
  for (const char* word : {"slot=3", "SLOTS=4", "4", "slots"})
    CHECK(error_in(std::string("a\nb ") + word + "\n") ==
          "line 2 of hosts has \"" + std::string(word) + "\" after the host, wanted slots=N or max_slots=N");
  CHECK(error_in("me@a\n") == "line 1 of hosts has \"me@a\", which is not a host name");
  CHECK(error_in("a:99999999999\n").find("line 1 of hosts has \"99999999999\" as the number") == 0);
}

}  // namespace
}  // namespace fleetrun::launch::host_file_test
