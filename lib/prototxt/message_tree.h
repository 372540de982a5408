// A message as a JSON tree, whose values know where they were written.
#pragma once
#include <string>
#include <vector>

#include "base/json/json_value.h"
#include "prototxt/parse_text.h"
#include "prototxt/places.h"

namespace fleetrun::prototxt {

struct MessageTree {
  JsonValue root = JsonValue::object();
  std::vector<std::string> at_default;  // paths of values that are the default of their field
};

// The default of a field that is neither repeated nor a message.
JsonValue default_of(const pb::FieldDescriptor* field);

MessageTree tree_of(const ParsedText& parsed, const Places& places);

}  // namespace fleetrun::prototxt
