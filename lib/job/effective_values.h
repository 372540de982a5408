// What holds for each key in the end, and where that comes from: the lines of `fleetrun config job.json`.
#pragma once
#include <string>
#include <vector>

#include "job/keys/key.h"
#include "job/parse_job.h"
#include "job/read/draft.h"

namespace fleetrun::job {

std::vector<KeyValue> effective_values(const Key& keys, Draft& draft);

}  // namespace fleetrun::job
