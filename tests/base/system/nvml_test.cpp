#include "base/system/nvml.h"

#include <cstdlib>

#include <doctest/doctest.h>

namespace fleetrun::nvml_test {
namespace {

TEST_CASE("the load of a GPU is found by its place on the bus") {
  const Nvml nvml(FAKE_NVML);
  CHECK(nvml.is_ready());
  CHECK(nvml.read_load("0000:01:00.0") == GpuLoad{.busy_percent = 97,
                                                  .memory_used = std::int64_t{40} << 30,
                                                  .memory_total = std::int64_t{80} << 30,
                                                  .celsius = 61,
                                                  .milliwatts = 412'500});
}

TEST_CASE("what the driver does not say about a GPU is not known") {
  const Nvml nvml(FAKE_NVML);
  CHECK(nvml.read_load("0000:00:00.0") ==
        GpuLoad{.memory_used = std::int64_t{300} << 20, .memory_total = std::int64_t{80} << 30});
}

TEST_CASE("the load is empty if the GPU, the driver or a working driver is missing") {
  CHECK_FALSE(Nvml(FAKE_NVML).read_load("0000:07:00.0"));
  CHECK_FALSE(Nvml("no-such-library.so.1").read_load("0000:01:00.0"));
  ::setenv("FAKE_NVML", "broken", 1);
  CHECK_FALSE(Nvml(FAKE_NVML).is_ready());
  CHECK_FALSE(Nvml(FAKE_NVML).read());
  ::unsetenv("FAKE_NVML");
}

}  // namespace
}  // namespace fleetrun::nvml_test
