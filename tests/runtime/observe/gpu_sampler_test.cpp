#include "runtime/observe/gpu_sampler.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>

namespace fleetrun::runtime::gpu_sampler_test {
namespace {

using namespace std::chrono_literals;

bool comes_true(const std::function<bool()>& condition) {
  const auto latest = std::chrono::steady_clock::now() + 30s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > latest) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

TEST_CASE("the page shows the load of the GPU as long as somebody measures it") {
  ProgressPage page;
  {
    const GpuSampler sampler(page, "0000:01:00.0", FAKE_NVML);
    CHECK(comes_true([&] { return page.gpu.read() != GpuLoad(); }));
    CHECK(comes_true([&] { return page.gpu.read().milliwatts == 412'500; }));
    CHECK(page.gpu.read().busy_percent == 97);
  }
  CHECK(page.gpu.read() == GpuLoad());
}

TEST_CASE("a rank without a GPU, or without the driver's library, shows nothing") {
  ProgressPage page;
  { const GpuSampler sampler(page, "", FAKE_NVML); }
  { const GpuSampler sampler(page, "0000:01:00.0", "no-such-library.so.1"); }
  CHECK(page.gpu.read() == GpuLoad());
}

TEST_CASE("nobody waits for a driver that does not answer") {
  ::setenv("FAKE_NVML", "hang", 1);
  auto page = std::make_unique<ProgressPage>();
  const auto begin = std::chrono::steady_clock::now();
  { const GpuSampler sampler(*page, "0000:01:00.0", FAKE_NVML); }
  page.reset();
  CHECK(std::chrono::steady_clock::now() - begin < GpuSampler::kEvery);
}

}  // namespace
}  // namespace fleetrun::runtime::gpu_sampler_test
