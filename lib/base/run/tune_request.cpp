#include "base/run/tune_request.h"

#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun {
namespace {

template <typename Number>
bool read_number(const std::string& text, Number& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size() && number > 0;
}

bool read_part(const std::string& part, TuneRequest& request) {
  const auto equals = part.find('=');
  const std::string name = part.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
  if (name == "budget") return read_number(value, request.budget_seconds);
  if (name == "memory") return read_number(value, request.memory.emplace());
  if (equals != std::string::npos) return false;
  if (name == "amp") return request.amp = true;
  if (name == "explain") return request.explain = true;
  if (name == "again") return request.again = true;
  return false;
}

}  // namespace

std::string write_tune_request(const TuneRequest& request) {
  std::string text = fmt::format("budget={}", request.budget_seconds);
  if (request.amp) text += ",amp";
  if (request.explain) text += ",explain";
  if (request.again) text += ",again";
  if (request.memory) text += fmt::format(",memory={}", *request.memory);
  return text;
}

TuneRequest parse_tune_request(const std::string& text) {
  TuneRequest request;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');)
    if (!read_part(part, request))
      throw Error(
          ErrorKind::usage,
          fmt::format("found \"{}\" in the request to tune \"{}\", wanted budget=SECONDS, amp, explain, "
                      "again or memory=BYTES",
                      part, text));
  return request;
}

}  // namespace fleetrun
