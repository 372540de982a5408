// How long the device takes, as its events know it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cuda/plugin/cuda_device.h"

namespace fleetrun::cuda {
namespace {

std::unique_ptr<CUevent_st, Destroy<cudaEventDestroy>> make_timer() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "making an event");
  return std::unique_ptr<CUevent_st, Destroy<cudaEventDestroy>>(event);
}

class CudaStamp : public runtime::Stamp {
 public:
  explicit CudaStamp(CudaDevice& device) : device_(device), event_(make_timer()) {}
  void record(int stream) override {
    check(cudaEventRecord(event_.get(), device_.stream(stream)), "recording an event");
  }
  std::int64_t ns_after(const runtime::Stamp& earlier) const override {
    constexpr double kNanoseconds = 1e6;  // of a millisecond
    float took = 0;
    check(cudaEventElapsedTime(&took, dynamic_cast<const CudaStamp&>(earlier).event_.get(), event_.get()),
          "timing");
    return std::llround(took * kNanoseconds);
  }

 private:
  CudaDevice& device_;
  std::unique_ptr<CUevent_st, Destroy<cudaEventDestroy>> event_;
};

}  // namespace

std::unique_ptr<runtime::Stamp> CudaDevice::make_stamp() { return std::make_unique<CudaStamp>(*this); }

float CudaDevice::time_of(const std::function<void()>& work) {
  constexpr int kWarmUps = 2, kTimes = 3;
  const cudaStream_t compute = stream(runtime::kComputeStream);
  const auto begin = make_timer(), end = make_timer();
  float least = std::numeric_limits<float>::infinity();
  for (int i = -kWarmUps; i < kTimes; ++i) {
    check(cudaEventRecord(begin.get(), compute), "recording an event");
    work();
    check(cudaEventRecord(end.get(), compute), "recording an event");
    wait_for(end.get());
    float took = 0;
    check(cudaEventElapsedTime(&took, begin.get(), end.get()), "timing");
    if (i >= 0) least = std::min(least, took);
  }
  return least;
}

}  // namespace fleetrun::cuda
