#include "launch/console/console.h"

#include <unistd.h>

#include <chrono>
#include <string>

#include <fmt/format.h>

#include "base/system/colours.h"
#include "base/system/environment.h"
#include "base/system/standard_descriptors.h"
#include "base/text/printable.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/console/banner.h"

namespace fleetrun::launch {

Console::Console(EventLoop& loop, LogLevel least_level)
    : out(loop, STDOUT_FILENO),
      err(loop, STDERR_FILENO),
      out_has_colours(wants_colours(Environment::of_this_process(), out.is_terminal())),
      err_has_colours(wants_colours(Environment::of_this_process(), err.is_terminal())),
      is_one_place(outputs_meet()),
      least(least_level) {}

void Console::log(LogLevel level, std::string_view message) {
  if (level >= least) show(log_text(show_value(level), std::chrono::system_clock::now(), message));
}

void Console::say(std::string_view message) { show(fmt::format("fleetrun: {}\n", message)); }

void Console::warn(std::string_view message) {
  show_problem(fmt::format("fleetrun: warning: {}\n", message));
}

void Console::show(std::string_view lines) { write_message(printable_lines(lines)); }

void Console::show_problem(std::string_view lines) {
  const std::string text = printable_lines(lines);
  write_message(err_has_colours ? colour_problem(text) : text);
}

void Console::write_message(std::string_view text) {
  bool in_line = err.leave_line();
  if (is_one_place && out.leave_line()) in_line = true;
  if (in_line) err.write("\n");
  err.write(text);
}

void Console::hold() {
  out.hold();
  err.hold();
}

void Console::release() {
  out.release();
  err.release();
}

}  // namespace fleetrun::launch
