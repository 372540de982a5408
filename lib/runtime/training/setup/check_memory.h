// Whether a training fits into the memory of this host, before it takes any.
#pragma once
#include <cstdint>

#include "base/run/rank_env.h"
#include "base/system/host_memory.h"
#include "job/spec/job_spec.h"
#include "runtime/models/model.h"

namespace fleetrun::runtime {

// Throws Error(config) when the ranks of this host together certainly need more memory than it has, with what they need and the
// batch that fits. For ranks whose tensors lie in the host's memory. A pipeline is not checked: each rank has its own part.
void check_memory(const job::JobSpec& job, const ModelFacts& facts, const RankEnv& env,
                  const HostMemory& host);

}  // namespace fleetrun::runtime
