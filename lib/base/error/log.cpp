#include "base/error/log.h"

#include <unistd.h>

#include <fmt/format.h>

#include "base/text/printable.h"

namespace fleetrun {

void log_line(std::string_view who, std::string_view message) {
  const std::string line = fmt::format("{}: {}\n", who, printable_lines(message));
  // Nobody can be told when stderr is gone.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace fleetrun
