// The functions of NVIDIA's management library that we call, as its header declares them: the library is part of the
// driver and loaded at run time, its header may not be installed.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "launch/host/gpu_facts.h"

namespace fleetrun::launch {

// All GPUs, by the library of this name. Nothing when it cannot be loaded or does not work. May take as long as the
// driver does.
std::optional<std::vector<GpuFact>> read_nvml(const std::string& library);

}  // namespace fleetrun::launch
