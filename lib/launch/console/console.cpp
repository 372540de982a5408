#include "launch/console/console.h"

#include <unistd.h>

#include <chrono>
#include <string>

#include <fmt/format.h>

#include "base/system/environment.h"
#include "base/text/printable.h"
#include "launch/cli/flag_values.h"
#include "launch/console/banner.h"

namespace fleetrun::launch {

Console::Console(EventLoop& loop, LogLevel least_level)
    : out(loop, STDOUT_FILENO), err(loop, STDERR_FILENO), least(least_level) {}

void Console::log(LogLevel level, std::string_view message) {
  if (level >= least) show(log_text(show_value(level), std::chrono::system_clock::now(), message));
}

void Console::say(std::string_view message) { show(fmt::format("fleetrun: {}\n", message)); }

// https://no-color.org
void Console::warn(std::string_view message) {
  const Environment environment = Environment::of_this_process();
  const bool red = err.is_terminal() && environment.get_or("NO_COLOR", "").empty() &&
                   environment.get_or("TERM", "dumb") != "dumb";
  const std::string line = printable_lines(fmt::format("fleetrun: warning: {}", message));
  err.write(red ? "\x1b[31m" + line + "\x1b[0m\n" : line + "\n");
}

void Console::show(std::string_view lines) { err.write(printable_lines(lines)); }

void Console::hold() {
  out.hold();
  err.hold();
}

void Console::release() {
  out.release();
  err.release();
}

}  // namespace fleetrun::launch
