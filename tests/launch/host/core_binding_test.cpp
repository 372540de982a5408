#include "launch/host/core_binding.h"

#include <filesystem>

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::core_binding_test {
namespace {

using Shares = std::vector<std::vector<int>>;

// Two packages of two cores of two hyperthreads, numbered as Linux does: the second hyperthreads come last.
const std::vector<CpuPlace> kMachine = {{0, 0, 0}, {1, 0, 1}, {2, 1, 0}, {3, 1, 1},
                                        {4, 0, 0}, {5, 0, 1}, {6, 1, 0}, {7, 1, 1}};

TEST_CASE("hyperthreads of a core stay together, and neighbours get neighbours") {
  CHECK(share_cpus(kMachine, 1) == Shares{{0, 4, 1, 5, 2, 6, 3, 7}});
  CHECK(share_cpus(kMachine, 2) == Shares{{0, 4, 1, 5}, {2, 6, 3, 7}});
  CHECK(share_cpus(kMachine, 4) == Shares{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(share_cpus(kMachine, 3) == Shares{{0, 4}, {1, 5}, {2, 6, 3, 7}});
}

TEST_CASE("with more ranks than cores each gets hyperthreads of its own") {
  CHECK(share_cpus(kMachine, 8) == Shares{{0}, {4}, {1}, {5}, {2}, {6}, {3}, {7}});
}

TEST_CASE("more ranks than cpus cannot be bound") {
  CHECK_THROWS_WITH_AS(share_cpus({{0, 0, 0}}, 2), "--bind is cores: 2 ranks, but 1 cores may be used here",
                       Error);
}

TEST_CASE("cpus are described as taskset takes them") {
  CHECK(describe_cpus({3, 0, 1, 2, 8}) == "0-3,8");
  CHECK(describe_cpus({5}) == "5");
  CHECK(describe_cpus({}).empty());
}

TEST_CASE("places come from sysfs, and without it each cpu is a core") {
  const TemporaryFolder root;
  const std::vector<CpuPlace> bare = probe_cpus(root.path());
  REQUIRE_FALSE(bare.empty());
  CHECK(bare.front().core == bare.front().cpu);
  const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(bare.front().cpu) + "/topology";
  std::filesystem::create_directories(root / folder);
  root.write(folder + "/physical_package_id", "3\n");
  root.write(folder + "/core_id", "17\n");
  CHECK(probe_cpus(root.path()).front().package == 3);
  CHECK(probe_cpus(root.path()).front().core == 17);
}

}  // namespace
}  // namespace fleetrun::launch::core_binding_test
