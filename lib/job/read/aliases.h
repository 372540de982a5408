// Other ways of writing a key: "strategy.thread_num" for strategy.execution_strategy.num_threads, a plain
// number for the object optimizer.learning_rate.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/json/json_value.h"
#include "job/keys/key.h"
#include "job/read/draft.h"

namespace fleetrun::job {

struct Alias {
  std::string alias, path;  // both whole paths
};

std::vector<Alias> aliases_of(const Key& root);

// Moves what is written under an alias to where it belongs, with a note; a value that is written under both
// names is a problem.
void move_aliases(JsonValue& root, const std::vector<Alias>& aliases, Draft& draft);

// The path itself, or the one that it is an alias of, with a note.
std::string without_alias(const std::string& path, const std::vector<Alias>& aliases, Draft& draft);

// A plain number becomes the object that it stands for, when the key has such a shorthand.
void expand_shorthand(JsonValue& value, const Key& key);

}  // namespace fleetrun::job
