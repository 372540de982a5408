#include "launch/host/gpu_facts.h"

#include <unistd.h>

#include <cstdlib>

#include <doctest/doctest.h>

#include "launch/process/orphans.h"

namespace fleetrun::launch::gpu_facts_test {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

constexpr auto kLimit = 10s;  // for what answers at once

// A variable that the stand-in reads, for one test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST_CASE("a GPU with memory errors or a slowed clock is named") {
  const auto healthy = probe_gpus(FAKE_NVML, kLimit);
  REQUIRE(healthy);
  const Texts both = {"0", "1"};
  CHECK(lint_gpu_health(*healthy, both) == Texts{});
  const Variable mode("FAKE_NVML", "sick");
  const auto sick = probe_gpus(FAKE_NVML, kLimit);
  REQUIRE(sick);
  const std::string name = "GPU 1 (Fake GPU 1, GPU-10000000-aaaa-bbbb-cccc-000000000000)";
  CHECK(lint_gpu_health(*sick, {"0"}) == Texts{});
  CHECK(lint_gpu_health(*sick, both) ==
        Texts{name + " has had 3 uncorrected memory errors since the driver was loaded",
              name + " runs at a lower clock: heat, seen by the hardware"});
}

TEST_CASE("the driver's library tells of GPUs, their MIG devices, memory and processes") {
  const Variable holder("FAKE_NVML_PID", "4711");
  const auto gpus = probe_gpus(FAKE_NVML, kLimit);
  REQUIRE(gpus);
  REQUIRE(gpus->size() == 2);
  CHECK(gpus->at(0).uuid == "GPU-00000000-aaaa-bbbb-cccc-000000000000");
  CHECK(gpus->at(0).name == "Fake GPU 0");
  CHECK(gpus->at(0).memory_used == std::uint64_t{300} << 20);
  CHECK(gpus->at(0).migs.empty());
  CHECK(gpus->at(0).holders.empty());
  CHECK(gpus->at(1).memory_total == std::uint64_t{80} << 30);
  CHECK(gpus->at(1).migs ==
        Texts{"MIG-10000000-aaaa-bbbb-cccc-000000000000", "MIG-12000000-aaaa-bbbb-cccc-000000000000"});
  CHECK(gpus->at(1).holders == std::vector<pid_t>{4711});
  CHECK(find_children().empty());
}

TEST_CASE("without a library, or with one that does not work, nothing is known") {
  CHECK_FALSE(probe_gpus("libno-such-driver.so.1", kLimit));
  const Variable mode("FAKE_NVML", "broken");
  CHECK_FALSE(probe_gpus(FAKE_NVML, kLimit));
}

TEST_CASE("a driver that does not answer is given up") {
  const Variable mode("FAKE_NVML", "hang");
  const auto start = Clock::now();
  CHECK_FALSE(probe_gpus(FAKE_NVML, 100ms));
  CHECK(Clock::now() - start < kLimit);
  end_all_children(kLimit);
}

TEST_CASE("a chosen GPU that others use is reported, by index, UUID or MIG name, and once") {
  const GpuFact idle = {
      .uuid = "GPU-00aa", .name = "H100", .memory_used = 1 << 20, .memory_total = 1ull << 36};
  const GpuFact busy = {.uuid = "GPU-11bb",
                        .name = "H100",
                        .migs = {"MIG-7"},
                        .memory_used = 40ull << 30,
                        .memory_total = 80ull << 30,
                        .holders = {::getpid()}};
  const std::vector<GpuFact> gpus = {idle, busy};
  CHECK(lint_gpus(gpus, {"0", "GPU-00aa"}).empty());
  const std::string told = "GPU 1 (H100, GPU-11bb) is in use: 40.0 of 80.0 GiB, by pid " +
                           std::to_string(::getpid()) + " (launch_test)";
  for (const char* id : {"1", "GPU-11", "MIG-7"}) CHECK(lint_gpus(gpus, {id}) == Texts{told});
  CHECK(lint_gpus(gpus, {"0", "1", "MIG-7"}).size() == 1);
  CHECK(lint_gpus(gpus, {"5"}) == Texts{"the driver has no GPU 5; it has 2"});
}

}  // namespace
}  // namespace fleetrun::launch::gpu_facts_test
