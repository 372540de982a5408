// Contradictions between localsgd or adaptive_localsgd and other keys.
#pragma once
#include "job/read/draft.h"

namespace fleetrun::job {

void check_local_training(Draft& draft);

}  // namespace fleetrun::job
