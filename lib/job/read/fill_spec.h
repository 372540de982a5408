// Goes through the tree of a job file along the table of keys and fills the spec with what is good.
#pragma once
#include <string>

#include "base/json/json_value.h"
#include "job/keys/key.h"
#include "job/read/draft.h"

namespace fleetrun::job {

// `root` is the whole job: an object. A key with the value null counts as absent. Problems of single keys and of keys of one
// object go into the draft.
void fill_spec(JsonValue root, const Key& keys, Draft& draft);

// The same for the value of one key.
void fill_part(const JsonValue& value, const Key& key, const std::string& path, Draft& draft);

}  // namespace fleetrun::job
