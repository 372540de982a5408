// What the driver says about the GPUs of this machine: through NVML, loaded at run time, in a process of its own,
// because a driver in trouble may never answer.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/loop/clock.h"

namespace fleetrun::launch {

struct GpuFact {
  std::string uuid;               // "GPU-8932f937-..."
  std::string name;               // "NVIDIA H100 80GB HBM3"
  std::vector<std::string> migs;  // names of its MIG devices, as CUDA_VISIBLE_DEVICES takes them
  std::uint64_t memory_used = 0, memory_total = 0;  // bytes
  std::vector<pid_t> holders;                       // processes that compute on it
  std::uint64_t ecc_errors = 0;                     // uncorrected, since the driver was loaded
  std::uint64_t throttle = 0;                       // reasons, a set of bits of NVML
};

constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// In the driver's order, which is that of the PCI bus. Nothing without a driver, or when it takes longer than `limit`.
std::optional<std::vector<GpuFact>> probe_gpus(const std::string& library, Clock::duration limit);

// One text for each chosen GPU with memory errors, or with a clock that heat or a lack of power slows down. `visible` are indexes, UUIDs or
// their beginnings, or MIG names.
std::vector<std::string> lint_gpu_health(const std::vector<GpuFact>& gpus,
                                         const std::vector<std::string>& visible);

// One text for each chosen GPU that others use, or that the driver does not know.
std::vector<std::string> lint_gpus(const std::vector<GpuFact>& gpus, const std::vector<std::string>& visible);

}  // namespace fleetrun::launch
