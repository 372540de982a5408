// The table of all keys of a job file: an object whose members are the top-level keys.
#pragma once
#include <string>
#include <vector>

#include "job/keys/key.h"

namespace fleetrun::job {

Key job_keys();

std::vector<Choice> metrics();  // the scores of an evaluation

// Its sections, a file each.
Key model_keys();
Key data_keys();
Key optimizer_keys();
Key train_keys();
Key strategy_keys();

// What a spec holds under a key, as people write it: "resnet50" for model.name.
std::string value_text(JobSpec spec, const std::string& path);

}  // namespace fleetrun::job
