// The log folder that a subcommand is about, and help that all of them give alike.
#pragma once
#include <cstdlib>
#include <string>

#include "launch/cli/flag.h"

namespace fleetrun {

// --log_dir, else PADDLE_LOG_DIR, else log.
inline std::string run_folder(const launch::FoundFlags& found) {
  const char* variable = std::getenv("PADDLE_LOG_DIR");
  const bool given = variable != nullptr && *variable != '\0';
  return found.value("--log_dir").value_or(given ? variable : "log");
}

}  // namespace fleetrun
