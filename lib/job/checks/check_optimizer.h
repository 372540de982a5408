// Contradictions between the optimizer and the strategies that change it (docs/strategies.md#combinations).
#pragma once
#include "job/read/draft.h"

namespace fleetrun::job {

// Reports what Fleet would silently switch off: lars without momentum, lamb without adam, and strategies that exclude
// each other.
void check_optimizer(Draft& draft);

}  // namespace fleetrun::job
