// What holds for each key in the end, and where that comes from: the lines of `fleetrun config job.json`.
#pragma once
#include <string>
#include <vector>

#include "job/draft.h"
#include "job/key.h"
#include "job/parse_job.h"

namespace fleetrun::job {

std::vector<KeyValue> effective_values(const Key& keys, Draft& draft);

// What a spec holds under a key, as people write it: "resnet50" for model.name.
std::string value_text(JobSpec spec, const std::string& path);

}  // namespace fleetrun::job
