// Kernels, copies and fills as CUPTI sees them, NVIDIA's interface for profilers. It is loaded when a job wants a trace, so fleetrun is built and
// runs without it.
#pragma once
#include <memory>
#include <string>

#include "runtime/kernels/activity_watch.h"

namespace fleetrun::cuda {

// One at a time in a process, because CUPTI has one list of what it watches. `file`: "" stands for the library of the toolkit's major version,
// where the loader finds libraries. Null: there is no CUPTI, and `problem` says why.
std::unique_ptr<runtime::ActivityWatch> make_cupti_watch(const std::string& file, std::string& problem);

}  // namespace fleetrun::cuda
