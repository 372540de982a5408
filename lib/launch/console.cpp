#include "launch/console.h"

#include <unistd.h>

#include <chrono>

#include <fmt/format.h>

#include "launch/banner.h"
#include "launch/option_values.h"

namespace fleetrun::launch {

Console::Console(EventLoop& loop, LogLevel least_level)
    : out(loop, STDOUT_FILENO), err(loop, STDERR_FILENO), least(least_level) {}

void Console::log(LogLevel level, std::string_view message) {
  if (level >= least) err.write(log_text(show_value(level), std::chrono::system_clock::now(), message));
}

void Console::say(std::string_view message) { err.write(fmt::format("fleetrun: {}\n", message)); }

}  // namespace fleetrun::launch
