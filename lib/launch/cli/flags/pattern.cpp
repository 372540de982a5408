#include "launch/cli/flags/pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include "base/error/error.h"
#include "base/text/printable.h"
#include "base/text/utf8.h"

namespace fleetrun::launch {
namespace {

// What other engines have and RE2 leaves out, because its time would have no bound.
std::string describe_unsupported(const re2::RE2& engine) {
  const std::string& part = engine.error_arg();
  if (engine.error_code() == re2::RE2::ErrorBadEscape && part.size() == 2 && part[1] >= '1' && part[1] <= '9')
    return fmt::format("back references like {} are not supported", part);
  const bool look_around = part.starts_with("(?=") || part.starts_with("(?!") || part.starts_with("(?<");
  if (look_around && engine.error_code() != re2::RE2::ErrorBadNamedCapture)
    return fmt::format("look-around like {} is not supported", part);
  return "";
}

std::string describe_problem(const re2::RE2& engine, const std::string& text) {
  const std::string& part = engine.error_arg();
  std::string problem = describe_unsupported(engine);
  if (problem.empty()) problem = engine.error();
  const auto place = text.find(part);
  if (part.empty() || part == text || place == std::string::npos) return problem;
  return fmt::format("{}, at character {}", problem, place + 1);
}

}  // namespace

Pattern::Pattern(const std::string& source, const std::string& text) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto engine = std::make_shared<re2::RE2>(text, options);
  if (!engine->ok())
    throw Error(ErrorKind::usage,
                fmt::format("{} is \"{}\", not a regular expression: {}", source, printable(text),
                            printable(describe_problem(*engine, text))),
                "RE2's syntax: https://github.com/google/re2/wiki/Syntax");
  engine_ = std::move(engine);
}

// RE2 reads UTF-8; what is none would match nothing, not even a dot.
bool Pattern::is_in(std::string_view line) const {
  if (is_utf8(line)) return re2::RE2::PartialMatch({line.data(), line.size()}, *engine_);
  return re2::RE2::PartialMatch(printable(std::string(line)), *engine_);
}

}  // namespace fleetrun::launch
