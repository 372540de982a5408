// The text of the job file, as the launcher read it. All ranks of all attempts get this text, so an edit of the file during the run
// changes nothing.
#pragma once
#include <string>
#include <string_view>

#include "base/system/unique_fd.h"

namespace fleetrun {

// A sealed memfd with the text. Any number of workers may inherit it, because reading moves no position.
// Throws Error(os).
UniqueFd put_job_text(std::string_view text);

// Throws Error(protocol) when `fd` cannot be read.
std::string read_job_text(int fd);

}  // namespace fleetrun
