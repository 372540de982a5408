// Which worker uses which GPU, said so that Paddle (ids relative to CUDA_VISIBLE_DEVICES) and PyTorch
// (cuda:LOCAL_RANK) mean the same device: every worker sees the same list, and picks by index.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace fleetrun::launch {

struct GpuRequest {
  std::optional<std::string> gpus;     // --gpus: absolute ids
  std::optional<std::string> visible;  // CUDA_VISIBLE_DEVICES of the launcher
  int present = 0;                     // GPUs of the machine
  std::optional<int> workers;          // --nproc_per_node; one per GPU when absent
};

struct GpuMapping {
  std::vector<std::string> visible;         // CUDA_VISIBLE_DEVICES of all workers, kept word for word
  std::vector<std::vector<int>> of_worker;  // indexes into `visible`
  std::string note;                         // what the original says when ids become relative, or ""
};

// --gpus on the CPU: how many worker slots its numbers are. Throws Error(usage) for what is no list of numbers, or lists one twice.
int count_cpu_slots(const std::string& gpus);

// Items 0..items-1 dealt out evenly to `workers`. Throws Error(usage) when they do not divide.
std::vector<std::vector<int>> deal_out(int items, int workers);

// Throws Error(usage).
GpuMapping map_gpus(const GpuRequest& request);

}  // namespace fleetrun::launch
