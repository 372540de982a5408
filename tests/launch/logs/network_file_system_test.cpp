#include "launch/logs/network_file_system.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::network_file_system_test {
namespace {

TEST_CASE("a folder of this host is not on the network, nor is one that would be made there") {
  CHECK_FALSE(is_on_network("/proc"));
  CHECK_FALSE(is_on_network("/proc/none/log"));
  CHECK_FALSE(is_on_network("/dev/null/none"));
}

TEST_CASE("NFS, Lustre, GPFS and Ceph are on the network, ext4, XFS, tmpfs and overlayfs are not") {
  for (const std::uint32_t type : {0x6969U, 0x0bd00bd0U, 0x47504653U, 0x00c36400U})
    CHECK(is_network_type(type));
  for (const std::uint32_t type : {0xef53U, 0x58465342U, 0x01021994U, 0x794c7630U})
    CHECK_FALSE(is_network_type(type));
}

}  // namespace
}  // namespace fleetrun::launch::network_file_system_test
