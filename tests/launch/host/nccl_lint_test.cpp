#include "launch/host/nccl_lint.h"

#include <filesystem>

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace fleetrun::launch::nccl_lint_test {
namespace {

using Texts = std::vector<std::string>;

const NetworkFacts kNetwork = {.interfaces = {"lo", "eth0", "ib0", "docker0"},
                               .loopbacks = {"lo"},
                               .infiniband_ports = 1,
                               .infiniband_active = 1};

Texts lint(const std::string& name, const std::string& value, int nodes = 1) {
  return lint_nccl({{name, value}}, kNetwork, nodes);
}

TEST_CASE("known variables with sound values are fine, and others are none of NCCL's business") {
  CHECK(lint("NCCL_DEBUG", "INFO").empty());
  CHECK(lint("NCCL_IB_DISABLE", "0").empty());
  CHECK(lint("PATH", "x").empty());
}

TEST_CASE("what NVIDIA's container images set beside NCCL's own variables is no mistake of a user") {
  CHECK(lint("NCCL_VERSION", "2.28.9-1").empty());
}

TEST_CASE("an unknown variable is reported with the one that was probably meant") {
  CHECK(
      lint("NCCL_SOKET_IFNAME", "eth0") ==
      Texts{
          "NCCL_SOKET_IFNAME is not a variable that NCCL is known to read; did you mean NCCL_SOCKET_IFNAME?"});
  CHECK(lint("NCCL_XYZZY_QUUX", "1") ==
        Texts{"NCCL_XYZZY_QUUX is not a variable that NCCL is known to read"});
}

TEST_CASE("an obsolete variable is reported with its successor") {
  CHECK(lint("NCCL_IB_CUDA_SUPPORT", "1") ==
        Texts{"NCCL_IB_CUDA_SUPPORT is obsolete since NCCL 2.4; NCCL_NET_GDR_LEVEL took its place"});
}

TEST_CASE("an interface is looked for as NCCL does: prefixes, whole names, all but some") {
  for (const char* there : {"eth", "eth0", "=eth0", "wlan,ib", "^docker", "^=docker0"})
    CHECK_MESSAGE(lint("NCCL_SOCKET_IFNAME", there).empty(), there);
  CHECK(
      lint("NCCL_SOCKET_IFNAME", "eth1") ==
      Texts{
          "NCCL_SOCKET_IFNAME is eth1, which no network interface of this host is (lo, eth0, ib0, docker0)"});
  CHECK(lint("NCCL_SOCKET_IFNAME", "=eth").size() == 1);
  CHECK(lint("NCCL_SOCKET_IFNAME", "^lo,eth,ib,docker").size() == 1);
}

TEST_CASE("the loopback interface is wrong between nodes only") {
  CHECK(lint("NCCL_SOCKET_IFNAME", "lo").empty());
  CHECK(lint("NCCL_SOCKET_IFNAME", "lo", 2) ==
        Texts{"NCCL_SOCKET_IFNAME is lo, the loopback interface, which reaches no other node"});
}

TEST_CASE("InfiniBand that is up and switched off is reported") {
  CHECK(lint("NCCL_IB_DISABLE", "1") ==
        Texts{"NCCL_IB_DISABLE is 1, but this host has an active InfiniBand or RoCE port"});
  CHECK(lint_nccl({{"NCCL_IB_DISABLE", "1"}}, {.interfaces = {"lo"}}, 1).empty());
}

TEST_CASE("this host has a loopback interface, and InfiniBand when a port of sysfs is active") {
  const TemporaryFolder root;
  CHECK(probe_network(root.path()).loopbacks == Texts{"lo"});
  CHECK(probe_network(root.path()).infiniband_active == 0);
  std::filesystem::create_directories(root / "sys/class/infiniband/mlx5_0/ports/1");
  root.write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  CHECK(probe_network(root.path()).infiniband_active == 1);
  root.write("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  CHECK(probe_network(root.path()).infiniband_active == 0);
}

}  // namespace
}  // namespace fleetrun::launch::nccl_lint_test
