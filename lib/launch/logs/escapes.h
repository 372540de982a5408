// Escape sequences of terminals (ECMA-48).
#pragma once
#include <cstddef>
#include <string_view>

namespace fleetrun::launch {

constexpr char kEscape = '\x1b';

// The place after the escape sequence that begins at `start`; the end of the text, if it is not complete.
std::size_t end_of_escape(std::string_view text, std::size_t start);

// Where an incomplete control sequence begins at the end of the text, such as "\x1b[1"; the size of the text: there is none.
std::size_t begin_of_unfinished_escape(std::string_view text);

// How many rows the escape sequence moves the cursor up (CUU, CPL) or down (CUD, CNL); 0: it does something else.
std::size_t rows_up(std::string_view escape);
std::size_t rows_down(std::string_view escape);

// The place of the first escape sequence that moves the cursor up; npos: there is none.
std::size_t find_cursor_up(std::string_view text);

}  // namespace fleetrun::launch
