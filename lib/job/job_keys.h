// The table of all keys of a job file: an object whose members are the top-level keys.
#pragma once
#include "job/key.h"

namespace fleetrun::job {

Key job_keys();

// Its sections, a file each.
Key model_keys();
Key data_keys();
Key optimizer_keys();
Key train_keys();
Key strategy_keys();

}  // namespace fleetrun::job
