// Other people's text: what comes from a log, a socket, a file name, a command line or a variable, made safe to show.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace fleetrun {

// One character of UTF-8 that printable() does not show: it is for the terminal, reverses the direction of text, or ends a line. Not a tab.
bool is_unprintable(std::string_view character);

// Every byte that is not valid UTF-8 becomes U+FFFD. For JSON and Prometheus, which carry anything else.
std::string valid_utf8(std::string_view text);

// Valid UTF-8 that leaves a terminal as it is: control characters become '?', and so do the characters that reverse
// the direction of text. Tabs stay; line ends stay in printable_lines only.
std::string printable(std::string_view text);
std::string printable_lines(std::string_view text);

// At most `limit` bytes of printable text, cut between characters; "..." stands for what is left out.
std::string printable_start(std::string_view text, std::size_t limit);

}  // namespace fleetrun
