// What the command line changes in a job: "train.epochs=2", "optimizer.learning_rate={\"name\": \"cosine\"}".
#pragma once
#include <string>
#include <vector>

#include "base/json/json_value.h"
#include "job/keys/key.h"
#include "job/read/aliases.h"
#include "job/read/draft.h"

namespace fleetrun::job {

struct Override {
  std::string path, value;  // as typed
};

// Throws Error(usage) for the first word that is not key.path=value, with the key that was meant.
std::vector<Override> parse_overrides(const std::vector<std::string>& words, const Key& keys);

// Puts the values into the tree of the file, the last one of a path wins. Their positions have line 0. The value null
// takes a key of the file away. An object takes the place of the whole object before it; a note says so if values are lost.
void apply_overrides(JsonValue& root, const std::vector<Override>& overrides, const Key& keys, Draft& draft);

}  // namespace fleetrun::job
