#include "launch/cli/log_query.h"

#include <charconv>
#include <ctime>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::launch {
namespace {

using WallClock = std::chrono::system_clock;
using std::chrono::seconds;

std::optional<seconds> unit_of(char letter) {
  switch (letter) {
    case 's':
      return seconds(1);
    case 'm':
      return seconds(60);
    case 'h':
      return seconds(3600);
    case 'd':
      return seconds(24 * 3600);
    default:
      return std::nullopt;
  }
}

std::optional<seconds> as_duration(const std::string& text) {
  constexpr int kMost = 100'000'000;  // three years in seconds; far from the clock's limit in days
  if (text.empty()) return std::nullopt;
  const auto unit = unit_of(text.back());
  int count = -1;
  const char* end = text.data() + text.size() - 1;
  const auto [stop, problem] = std::from_chars(text.data(), end, count);
  if (!unit || problem != std::errc{} || stop != end || count < 0 || count > kMost) return std::nullopt;
  return count * *unit;
}

// The last one before now.
std::optional<WallClock::time_point> as_time_of_day(const std::string& text, WallClock::time_point now) {
  const std::time_t present = WallClock::to_time_t(now);
  std::tm local{};
  ::localtime_r(&present, &local);
  local.tm_sec = 0;
  const char* end = ::strptime(text.c_str(), "%H:%M", &local);
  if (end != nullptr && *end == ':') end = ::strptime(end, ":%S", &local);
  if (end == nullptr || *end != '\0') return std::nullopt;
  std::tm day_before = local;
  --day_before.tm_mday;
  const auto today = WallClock::from_time_t(std::mktime(&local));
  return today <= now ? today : WallClock::from_time_t(std::mktime(&day_before));
}

// The logs have only what the ranks wrote, and their names.
LogPrefix parse_prefix_of_logs(const std::string& source, const std::string& text) {
  const LogPrefix prefix = parse_log_prefix(source, text);
  for (const std::string& name : names_in(prefix))
    if (name != "rank" && name != "local_rank" && name != "attempt")
      throw Error(
          ErrorKind::usage,
          fmt::format(
              "{} has {{{}}}, which is known only during the run; logs knows {{rank}}, {{local_rank}}, {{attempt}}",
              source, name),
          "--log_prefix of the run itself has it");
  return prefix;
}

}  // namespace

WallClock::time_point parse_since(const std::string& source, const std::string& text,
                                  WallClock::time_point now) {
  if (const auto ago = as_duration(text)) return now - *ago;
  if (const auto time = as_time_of_day(text, now)) return *time;
  throw Error(
      ErrorKind::usage,
      fmt::format("{} is \"{}\", must be a time ago like 30s, 10m, 2h, 1d, or a time of day like 14:30",
                  source, text));
}

LogQuery parse_log_query(const FoundFlags& found, const std::string& folder, WallClock::time_point now) {
  LogQuery query{.folder = folder, .follow = found.has("--follow")};
  if (const auto text = found.value("--rank")) query.ranks = parse_ranks("--rank", *text);
  if (const auto text = found.value("--since")) query.since = parse_since("--since", *text, now);
  if (const auto text = found.value("--grep")) query.pattern.emplace("--grep", *text);
  if (const auto text = found.value("--log_prefix"))
    query.prefix = parse_prefix_of_logs("--log_prefix", *text);
  return query;
}

}  // namespace fleetrun::launch
