// UTF-8, as strict as the standard: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once
#include <cstddef>
#include <string_view>

namespace fleetrun {

// The bytes of the character that begins at `offset`, 1 to 4; 0 when what stands there is not UTF-8.
std::size_t utf8_character_length(std::string_view text, std::size_t offset);

bool is_utf8(std::string_view text);

// The bytes of `text`, at most so many, that end with a whole character.
std::size_t whole_utf8_characters(std::string_view text, std::size_t most);

}  // namespace fleetrun
