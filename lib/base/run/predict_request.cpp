#include "base/run/predict_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun {
namespace {

constexpr std::array<std::string_view, 3> kFormats = {"text", "json", "csv"};  // in the order of the enum

bool read_count(std::string_view text, int& count) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  return problem == std::errc() && end == text.data() + text.size() && count >= 0;
}

bool read_part(std::string_view part, PredictRequest& request) {
  const auto equals = part.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = part.substr(0, equals), value = part.substr(equals + 1);
  if (name == "top") return read_count(value, request.top);
  if (name == "batch_size") return read_count(value, request.batch_size);
  if (name == "ranks") return read_count(value, request.ranks);
  const auto format = std::ranges::find(kFormats, value);
  if (name != "format" || format == kFormats.end()) return false;
  request.format = static_cast<PredictFormat>(format - kFormats.begin());
  return true;
}

}  // namespace

std::string write_predict_request(const PredictRequest& request) {
  return fmt::format("top={},batch_size={},ranks={},format={}", request.top, request.batch_size,
                     request.ranks, kFormats.at(static_cast<std::size_t>(request.format)));
}

PredictRequest parse_predict_request(const std::string& text) {
  PredictRequest request;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');)
    if (!read_part(part, request))
      throw Error(ErrorKind::usage,
                  fmt::format("found \"{}\" in the request to predict \"{}\", wanted top=N, batch_size=N, "
                              "ranks=N or format=text|json|csv",
                              part, text));
  return request;
}

}  // namespace fleetrun
