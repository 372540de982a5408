// Why a text is no JSON, in words for the person who wrote it: used by json_reader once the parser has given
// up.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_value.h"

namespace fleetrun {

// Where a parser stood when it could not go on.
struct JsonBreak {
  enum class After { start, opening, key, value, comma };  // the last thing that was right
  enum class Inside { nothing, list, object };             // the innermost container that is open

  std::size_t offset = 0;  // of the first byte behind what was right
  After after = After::start;
  Inside inside = Inside::nothing;
  TextPosition opened;  // where that container begins
};

struct JsonFault {
  std::size_t offset = 0;
  std::string message;  // what was found, what was wanted
};

JsonFault diagnose_json(std::string_view text, const JsonBreak& broken);

// A text in another encoding or with bytes that are no UTF-8.
std::optional<JsonFault> find_encoding_fault(std::string_view text);

}  // namespace fleetrun
