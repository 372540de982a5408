// Where something is in a text. Protobuf counts lines and columns from 0, columns in bytes, and a tab goes to the next multiple of 8.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "base/json/json_value.h"

namespace fleetrun::prototxt {

class Places {
 public:
  explicit Places(std::string_view text);

  std::size_t offset_of(int line, int column) const;  // at most the size of the text
  TextPosition at(std::size_t offset) const;
  TextPosition at(int line, int column) const { return at(offset_of(line, column)); }

  // Of a word that ends before `offset`, with only blanks and comments between; `offset` if there is none.
  std::size_t before(std::size_t offset, std::string_view word) const;

 private:
  std::string_view text_;
  std::vector<std::size_t> lines_;  // offsets of their first bytes
};

}  // namespace fleetrun::prototxt
