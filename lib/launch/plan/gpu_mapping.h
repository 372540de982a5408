// Which worker uses which GPU. Every worker sees the same list of GPUs and picks by index, so Paddle (ids relative to
// CUDA_VISIBLE_DEVICES) and PyTorch (cuda:LOCAL_RANK) mean the same device.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace fleetrun::launch {

// How the user wrote the flags, for messages.
struct DeviceFlags {
  std::string gpus = "--gpus";  // or "--devices" where that is what stands on the command line
  std::string workers = "--nproc_per_node";
};

struct GpuRequest {
  std::optional<std::string> gpus;     // --gpus: absolute ids
  std::optional<std::string> visible;  // CUDA_VISIBLE_DEVICES of the launcher
  int present = 0;                     // number of GPUs in the machine
  std::optional<int> workers;          // --nproc_per_node; one per GPU when absent
  DeviceFlags written;
};

struct GpuMapping {
  std::vector<std::string> visible;         // CUDA_VISIBLE_DEVICES of all workers, kept word for word
  std::vector<std::vector<int>> of_worker;  // indexes into `visible`
  std::string note;                         // PaddlePaddle's message about relative ids, or ""
};

// --gpus on the CPU: the number of worker slots that it lists. Throws Error(usage) if it is not a list of numbers, or
// lists a number twice.
int count_cpu_slots(const std::string& gpus, const DeviceFlags& written);

// Deals out the items 0..items-1 evenly to `workers`. Throws Error(usage) when `workers` does not divide `items`.
std::vector<std::vector<int>> deal_out(int items, int workers, const DeviceFlags& written);

// Throws Error(usage).
GpuMapping map_gpus(const GpuRequest& request);

}  // namespace fleetrun::launch
