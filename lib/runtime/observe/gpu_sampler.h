// Measures the GPU of a rank every few seconds, and writes what it finds to the page, from which `fleetrun ps` and the metrics read it.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "base/run/progress_page.h"
#include "base/system/nvml.h"

namespace fleetrun::runtime {

class GpuSampler {
 public:
  static constexpr auto kEvery = std::chrono::seconds(5);

  // `bus_id`: of the GPU, as Device::bus_id() says; "": there is none, and nothing is measured. The page outlives this object. Where the
  // driver's library is missing or does not work, the page says nothing.
  GpuSampler(ProgressPage& page, const std::string& bus_id, const std::string& library = kNvmlLibrary);
  // Does not wait for a driver that does not answer.
  ~GpuSampler();
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

 private:
  struct Shared;

  std::shared_ptr<Shared> shared_;  // with the thread, which may outlive this object
};

}  // namespace fleetrun::runtime
