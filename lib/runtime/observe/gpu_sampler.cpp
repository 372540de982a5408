#include "runtime/observe/gpu_sampler.h"

#include <condition_variable>
#include <mutex>

namespace fleetrun::runtime {

struct GpuSampler::Shared {
  std::mutex mutex;  // guards the page
  std::condition_variable changed;
  ProgressPage* page;  // null: the sampler is gone

  explicit Shared(ProgressPage& to) : page(&to) {}

  // False: the sampler is gone.
  bool tell(const GpuLoad& load) {
    std::unique_lock lock(mutex);
    if (page != nullptr) page->gpu.write(load);
    changed.wait_for(lock, kEvery, [this] { return page == nullptr; });
    return page != nullptr;
  }
};

GpuSampler::GpuSampler(ProgressPage& page, const std::string& bus_id, const std::string& library) {
  if (bus_id.empty()) return;
  shared_ = std::make_shared<Shared>(page);
  std::thread([shared = shared_, bus_id, library] {
    const Nvml nvml(library);
    while (const auto load = nvml.read_load(bus_id))
      if (!shared->tell(*load)) return;
  }).detach();
}

GpuSampler::~GpuSampler() {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->page->gpu.write({});
  shared_->page = nullptr;
  shared_->changed.notify_all();
}

}  // namespace fleetrun::runtime
