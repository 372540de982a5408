#include "base/system/colours.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

namespace fleetrun {

bool wants_colours(const Environment& environment, bool is_terminal) {
  if (!environment.get_or("NO_COLOR", "").empty()) return false;
  const std::string force = environment.get_or("CLICOLOR_FORCE", "0");
  if (!force.empty() && force != "0") return true;
  const std::string kind = environment.get_or("TERM", "dumb");
  return is_terminal && environment.get_or("CLICOLOR", "1") != "0" && !kind.empty() && kind != "dumb";
}

std::string in_colour(std::string_view text, Colour colour) {
  return fmt::format("\x1b[{}m{}\x1b[0m", static_cast<int>(colour), text);
}

std::string colour_problem(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    if (text.empty())
      text += in_colour(line, Colour::red);
    else
      text += line.starts_with("  hint: ") ? in_colour(line, Colour::cyan) : std::string(line);
    if (end < lines.size()) text += '\n';
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

void print_problem(const Error& error) {
  std::string text = error.describe("fleetrun");
  if (wants_colours(Environment::of_this_process(), ::isatty(STDERR_FILENO) == 1))
    text = colour_problem(text);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace fleetrun
