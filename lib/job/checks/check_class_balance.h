// Classes that count equally or not: data.class_weights and data.sampler.
#pragma once
#include "job/read/draft.h"

namespace fleetrun::job {

// Reports weights that do not fit the classes, as far as the job says how many there are, and a sampler that contradicts other keys.
void check_class_balance(Draft& draft);

}  // namespace fleetrun::job
