// Says in words why a text is not JSON, for the person who wrote it. json_reader asks when the parser has given up.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/json/json_value.h"

namespace fleetrun {

// Where a parser stood when it could not go on.
struct JsonBreak {
  enum class After { start, opening, key, colon, value, comma };  // the last thing that was right
  enum class Inside { nothing, list, object };                    // the innermost container that is open

  std::size_t offset = 0;  // of the first byte after what was right
  After after = After::start;
  Inside inside = Inside::nothing;
  TextPosition opened;  // where that container begins
};

struct JsonFault {
  std::size_t offset = 0;
  std::string message;  // what was found, what was wanted
};

JsonFault diagnose_json(std::string_view text, JsonBreak broken);

// Another encoding than UTF-8, or bytes that are not valid in it.
std::optional<JsonFault> find_encoding_fault(std::string_view text);

}  // namespace fleetrun
