// Finds and loads the plug-in of a device.
#pragma once
#include <string>

#include "base/system/environment.h"
#include "job/spec/job_spec.h"
#include "runtime/kernels/plugin.h"

namespace fleetrun::runtime {

// libfleetrun_cuda.so in the folder of our own libraries, wherever the installation was moved to.
std::string cuda_plugin_path();

// Stays loaded until the process ends. Throws Error(config) that names the file when it is not there, cannot be
// loaded, is not a plug-in, or is one for another version of fleetrun (both ABI numbers are said).
const Plugin& load_plugin(const std::string& path);

// For the device "cuda:INDEX". FLAGS_fraction_of_gpu_memory_to_use, FLEETRUN_TF32, FLEETRUN_LAYOUT and FLEETRUN_NVJPEG come from
// the environment.
// Throws Error(usage) for values out of their range.
PluginOptions plugin_options(const std::string& device, const job::StrategySpec& strategy,
                             const Environment& environment);

}  // namespace fleetrun::runtime
