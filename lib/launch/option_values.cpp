#include "launch/option_values.h"

#include <charconv>
#include <chrono>

#include <fmt/format.h>

#include "base/error.h"

namespace fleetrun::launch {
namespace {

constexpr int kMostRanks = 65536;       // more processes than a kernel starts by default (pid_max 32768)
constexpr double kMostSeconds = 1.0e7;  // four months, and far from the clock's own limit

template <typename Number>
bool parse_whole(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc{} && stop == end;
}

Error bad_value(const std::string& source, const std::string& text, const std::string& wanted) {
  return Error(ErrorKind::usage, fmt::format("{} is \"{}\", must be {}", source, text, wanted));
}

}  // namespace

int parse_count(const std::string& source, const std::string& text) {
  int count = 0;
  if (!parse_whole(text, count) || count < 1 || count > kMostRanks)
    throw bad_value(source, text, fmt::format("a whole number between 1 and {}", kMostRanks));
  return count;
}

int parse_restarts(const std::string& source, const std::string& text) {
  int count = 0;
  if (!parse_whole(text, count) || count < 0 || count > kMostRanks)
    throw bad_value(source, text, fmt::format("a whole number between 0 and {}", kMostRanks));
  return count;
}

std::uint16_t parse_port(const std::string& source, const std::string& text) {
  std::uint16_t port = 0;
  if (!parse_whole(text, port) || port == 0) throw bad_value(source, text, "a port between 1 and 65535");
  return port;
}

Clock::duration parse_seconds(const std::string& source, const std::string& text) {
  double seconds = 0;
  if (!parse_whole(text, seconds) || !(seconds >= 0) || seconds > kMostSeconds)
    throw bad_value(source, text, "a number of seconds, 0 or more");
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::optional<Clock::duration> parse_deadline(const std::string& source, const std::string& text) {
  const Clock::duration time = parse_seconds(source, text);
  return time == Clock::duration::zero() ? std::nullopt : std::optional(time);
}

job::DeviceChoice parse_device(const std::string& source, const std::string& text) {
  if (text == "auto") return job::DeviceChoice::automatic;
  if (text == "cpu") return job::DeviceChoice::cpu;
  if (text == "cuda") return job::DeviceChoice::cuda;
  throw bad_value(source, text, "cpu, cuda or auto");
}

bool parse_cgroup(const std::string& source, const std::string& text) {
  if (text == "auto") return true;
  if (text == "none") return false;
  throw bad_value(source, text, "auto or none");
}

}  // namespace fleetrun::launch
