// Contradictions between localsgd or adaptive_localsgd and other keys.
#pragma once
#include "job/draft.h"

namespace fleetrun::job {

void check_local_training(Draft& draft);

}  // namespace fleetrun::job
