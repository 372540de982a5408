#include "launch/report/utc_time.h"

#include <ctime>

#include <fmt/format.h>

namespace fleetrun::launch {

std::string utc_time(std::chrono::system_clock::time_point time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);  // downwards, also before 1970
  const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(time - whole).count();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  return fmt::format("{}.{:03}Z", text, milliseconds);
}

std::optional<std::chrono::system_clock::time_point> parse_utc_time(const std::string& text) {
  std::tm utc{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc) == nullptr) return std::nullopt;
  return std::chrono::system_clock::from_time_t(::timegm(&utc));
}

}  // namespace fleetrun::launch
