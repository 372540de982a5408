// Finds, takes out and puts in values of a tree by their dotted path.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/json/json_value.h"

namespace fleetrun::job {

const JsonValue* find_at(const JsonValue& root, std::string_view path);  // null when it is not there

// Takes the value out of the tree; nothing when it is not there.
std::optional<JsonValue> take_at(JsonValue& root, std::string_view path);

// Puts the value there, in place of what is; objects on the way are made, also in place of null, with the position of the
// value.
// When something else is in the way, the tree stays as it is and the path of that is returned.
std::optional<std::string> put_at(JsonValue& root, std::string_view path, JsonValue value);

}  // namespace fleetrun::job
