// Contradictions between strategy.pipeline and the rest of a job (docs/strategies.md#pipeline).
#pragma once
#include "job/read/draft.h"

namespace fleetrun::job {

// Reports strategies that do not work with stages, and micro-batches that do not make up a batch.
void check_pipeline(Draft& draft);

}  // namespace fleetrun::job
