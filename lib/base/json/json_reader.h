// Strict JSON text to a tree in which every value and key knows its line and column.
// Strict: UTF-8 without byte order mark, no comments, no trailing commas, no NaN, numbers that fit, no key
// twice, no NUL character in a text, not deeper than 32 levels. Problems are values, so that a
// caller can add others and report all of them at once.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json_value.h"

namespace fleetrun {

constexpr std::size_t kJsonBytesLimit = std::size_t{1}
                                        << 20;  // bytes; far above any file that people write by hand
constexpr int kJsonDepthLimit = 32;             // levels; ours need 5, and trees are walked recursively

struct JsonProblem {
  TextPosition position;
  std::string path;     // "data.train", as far as it is known
  std::string message;  // what was found, what was wanted
};

struct JsonDocument {
  JsonValue root;                     // what was read before the text broke off, all of it when complete
  std::vector<JsonProblem> problems;  // by position
  bool complete = false;  // the text is JSON from start to end, though keys may come twice and numbers
                          // may be too large (these are infinite)
};

// Never throws for any content of the text.
JsonDocument read_json(std::string_view text);

}  // namespace fleetrun
