#include "base/run/plan_request.h"

#include <array>
#include <charconv>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun {
namespace {

constexpr std::array kCounts = {std::pair("hosts", &PlanRequest::hosts),
                                std::pair("gpus", &PlanRequest::gpus)};
constexpr std::array kNumbers = {std::pair("memory", &PlanRequest::memory_bytes),
                                 std::pair("tflops", &PlanRequest::tflops),
                                 std::pair("memory_gb_s", &PlanRequest::memory_gb_s),
                                 std::pair("link_gb_s", &PlanRequest::link_gb_s),
                                 std::pair("network_gb_s", &PlanRequest::network_gb_s),
                                 std::pair("latency_us", &PlanRequest::latency_us),
                                 std::pair("step_ms", &PlanRequest::step_ms)};

constexpr int kMostRanks = 1 << 20;

template <typename Number>
bool read_plan_number(const std::string& text, Number& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size();
}

bool read_plan_part(const std::string& part, PlanRequest& request) {
  const auto equals = part.find('=');
  if (equals == std::string::npos) return false;
  const std::string name = part.substr(0, equals), value = part.substr(equals + 1);
  for (const auto& [known, member] : kCounts)
    if (name == known)
      return read_plan_number(value, request.*member) && request.*member > 0 && request.*member <= kMostRanks;
  for (const auto& [known, member] : kNumbers)
    if (name == known) return read_plan_number(value, request.*member) && request.*member >= 0;
  return false;
}

}  // namespace

std::string write_plan_request(const PlanRequest& request) {
  std::string text;
  for (const auto& [name, member] : kCounts) text += fmt::format("{}={},", name, request.*member);
  for (const auto& [name, member] : kNumbers) text += fmt::format("{}={},", name, request.*member);
  text.pop_back();
  return text;
}

PlanRequest parse_plan_request(const std::string& text) {
  PlanRequest request;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');)
    if (!read_plan_part(part, request))
      throw Error(ErrorKind::usage,
                  fmt::format("found \"{}\" in the request to plan \"{}\", wanted NAME=NUMBER with "
                              "a name of base/run/plan_request.h",
                              part, text));
  return request;
}

}  // namespace fleetrun
