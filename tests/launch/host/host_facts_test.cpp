#include "launch/host/host_facts.h"

#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace fleetrun::launch::host_facts_test {
namespace {

TEST_CASE("device files of GPUs are counted, those of the driver are not") {
  const TemporaryFolder root;
  std::filesystem::create_directories(root / "dev");
  for (const char* name : {"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia", "sda1"})
    root.write(std::string("dev/") + name, "");
  CHECK(probe_host(root.path()).gpus == 3);
}

TEST_CASE("a machine without /dev entries has no GPU, but cores and a loopback address") {
  const TemporaryFolder root;
  const HostFacts host = probe_host(root.path());
  CHECK(host.gpus == 0);
  CHECK(host.cores >= 1);
  CHECK(std::find(host.addresses.begin(), host.addresses.end(), "127.0.0.1") != host.addresses.end());
  CHECK(std::none_of(host.addresses.begin(), host.addresses.end(),
                     [](const std::string& address) { return address.starts_with("fe80:"); }));
  for (const std::string& address : host.addresses) CHECK(interface_of(host, address) != "");
}

}  // namespace
}  // namespace fleetrun::launch::host_facts_test
