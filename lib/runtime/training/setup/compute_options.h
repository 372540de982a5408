// What a job says about how its ops are computed.
#pragma once
#include <string>
#include <vector>

#include "job/spec/job_spec.h"
#include "runtime/data/batch_ring.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/search_algorithms.h"
#include "runtime/kernels/device.h"

namespace fleetrun::runtime {

// `threads`: of the rank. `replica`: replicas drop different values of their different samples.
ExecutorOptions executor_options(const job::JobSpec& job, int replica, int threads);

// The form in which batches have their images. A device with memory of its own gets the bytes, a fourth of the size of the
// numbers, and normalises them itself.
ImageForm image_form_for(Device& device);

SearchOptions search_options(const job::StrategySpec& strategy, int team);

// The team that the device can have. What is made for more threads than an op gets would wait for them for ever. Adds a warning to
// `messages` for a smaller team than wanted.
int team_within_limit(int wanted, const Device& device, std::vector<std::string>& messages);

}  // namespace fleetrun::runtime
