// Whether one value is what its key may hold, and the words for it when it is not.
#pragma once
#include <string>
#include <vector>

#include "base/json/json_reader.h"
#include "job/keys/key.h"

namespace fleetrun::job {

// Adds a problem for everything that is wrong with the value; true when nothing is.
bool check_value(const Key& key, const JsonValue& value, const std::string& path,
                 std::vector<JsonProblem>& problems);

std::vector<std::string> supported_choices(const Key& key);
std::string describe_found(const JsonValue& value);  // "the text \"lenett\"", "64.5", "a list"
std::string describe_wanted(const Key& key);  // "a whole number of at least 1", "one of \"pad\", \"drop\""

// "; did you mean \"train\"?" or nothing.
std::string did_you_mean(const std::string& found, const std::vector<std::string>& names);

}  // namespace fleetrun::job
