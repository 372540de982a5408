// What the driver says about the GPUs of this machine: through NVML, loaded at run time, in a process of its own,
// because a driver in trouble may never answer.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/system/nvml.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

// In the driver's order, which is that of the PCI bus. Nothing without a driver, or when it takes longer than `limit`.
std::optional<std::vector<GpuFact>> probe_gpus(const std::string& library, Clock::duration limit);

// One text for each chosen GPU with memory errors, or with a clock that heat or a lack of power slows down. `visible` are indexes, UUIDs or
// their beginnings, or MIG names.
std::vector<std::string> lint_gpu_health(const std::vector<GpuFact>& gpus,
                                         const std::vector<std::string>& visible);

// One text for each chosen GPU that others use, or that the driver does not know.
std::vector<std::string> lint_gpus(const std::vector<GpuFact>& gpus, const std::vector<std::string>& visible);

}  // namespace fleetrun::launch
