// What may follow the last words of a process that ends, and what shows that it did not end then.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "launch/evidence/finding.h"
#include "launch/evidence/log_lines.h"

namespace fleetrun::launch {

// The number of the first line of the last words. From there on the process reports no progress, does not try again, and writes
// at most `most` lines other than the usual chatter of an ending process. Lines of findings do not count.
std::size_t last_words_begin(const LogLines& log, const std::vector<Finding>& findings, std::size_t most);

// What Python, PyTorch, shells and launchers still write when a process ends with an error, and what continues a message.
bool is_chatter(std::string_view line);

// A record of an error or a warning, "2026-11-26 10:41:03 ERROR root: the server stops"; not of somebody who tries again.
bool is_complaint(std::string_view line);

// Whether the process worked on after this traceback. All lines after it may be the rest of the exception's message, which has any
// number of lines and may quote anything. So it takes more than `most` signs of life, and only lines that are rare in messages count: records
// of a logger, progress, and lines like those before the traceback.
bool worked_on(const LogLines& log, const Finding& traceback, std::size_t most);

}  // namespace fleetrun::launch
