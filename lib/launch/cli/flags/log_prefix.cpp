#include "launch/cli/flags/log_prefix.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/text/printable.h"
#include "base/text/suggest.h"

namespace fleetrun::launch {
namespace {

const std::vector<std::string>& known_names() {
  static const std::vector<std::string> names = {"rank", "local_rank", "role", "host", "time", "attempt"};
  return names;
}

std::string time_of_day() {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

std::string value_of(const std::string& name, const LinePlace& place) {
  if (name == "rank") return std::to_string(place.rank);
  if (name == "local_rank") return std::to_string(place.local_rank);
  if (name == "role") return place.role;
  if (name == "host") return printable(place.host);
  if (name == "attempt") return std::to_string(place.attempt);
  return time_of_day();
}

// Calls `text` and `name` for the parts of the template. False: a brace is not closed.
template <typename OnText, typename OnName>
bool walk(const std::string& pattern, OnText text, OnName name) {
  for (std::size_t at = 0; at < pattern.size();) {
    const std::size_t open = std::min(pattern.find('{', at), pattern.size());
    text(pattern.substr(at, open - at));
    if (open == pattern.size()) return true;
    const std::size_t close = pattern.find('}', open);
    if (close == std::string::npos) return false;
    name(pattern.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  return true;
}

}  // namespace

LogPrefix parse_log_prefix(const std::string& source, const std::string& text) {
  const auto check = [&](const std::string& name) {
    const auto& known = known_names();
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    const auto meant = closest(name, known);
    throw Error(ErrorKind::usage,
                fmt::format("{} has {{{}}}, must have only {{{}}}{}", source, name, fmt::join(known, "}, {"),
                            meant ? fmt::format("; did you mean {{{}}}?", *meant) : ""));
  };
  if (!walk(
          text, [](const std::string&) {}, check))
    throw Error(ErrorKind::usage, fmt::format("{} is \"{}\": a brace is not closed", source, text));
  return {text};
}

std::vector<std::string> names_in(const LogPrefix& prefix) {
  std::vector<std::string> names;
  walk(
      prefix.text, [](const std::string&) {}, [&](const std::string& name) { names.push_back(name); });
  return names;
}

std::string expand(const LogPrefix& prefix, const LinePlace& place) {
  std::string text;
  walk(
      prefix.text, [&](const std::string& part) { text += part; },
      [&](const std::string& name) { text += value_of(name, place); });
  return text;
}

}  // namespace fleetrun::launch
