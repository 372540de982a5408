#include "launch/logs/network_file_system.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::network_file_system_test {
namespace {

TEST_CASE("a folder of this host is not on the network, nor is one that would be made there") {
  CHECK_FALSE(is_on_network("/proc"));
  CHECK_FALSE(is_on_network("/proc/none/log"));
  CHECK_FALSE(is_on_network("/dev/null/none"));
}

}  // namespace
}  // namespace fleetrun::launch::network_file_system_test
