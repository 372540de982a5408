// Words of a command as a shell reads and writes them.
#pragma once
#include <string>
#include <vector>

namespace fleetrun::launch {

// Cut at spaces; quotes and backslashes as in sh(1), nothing is expanded. Throws Error(usage) for a quote that is not
// closed; `source` is "--debug_rank".
std::vector<std::string> split_words(const std::string& source, const std::string& text);

std::string quote_word(const std::string& word);    // with quotes only where they are needed
std::string quote_always(const std::string& word);  // in single quotes
std::string quote_words(const std::vector<std::string>& words);

}  // namespace fleetrun::launch
