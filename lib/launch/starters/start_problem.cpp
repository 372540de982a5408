#include "launch/starters/start_problem.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/error/exit_codes.h"
#include "base/json/json_reader.h"
#include "launch/logs/last_lines.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kShownLines = 30;  // mpirun explains a lot after the line that matters
constexpr std::size_t kLongestLine = 64 << 10;

bool is_ours(int code) {
  const auto codes = exit_codes();
  return code > 1 &&
         std::any_of(codes.begin(), codes.end(), [&](const ExitCode& one) { return one.code == code; });
}

}  // namespace

std::string to_text(const StartProblem& problem) {
  return to_json(JsonValue::object({{"line", problem.line}, {"exit_code", problem.exit_code}})) + "\n";
}

StartProblem parse_start_problem(std::string_view line) {
  const JsonValue root = read_json(line).root;
  const JsonValue* text = root.find("line", JsonValue::Kind::text);
  const JsonValue* code = root.find("exit_code", JsonValue::Kind::integer);
  if (text == nullptr || code == nullptr)
    throw Error(ErrorKind::internal, "the process that starts the other nodes sent a bad message");
  return {text->text, static_cast<int>(code->integer)};
}

StartProblem describe_start_problem(const std::string& nodes, const std::string& ended, int code,
                                    const std::string& words) {
  StartProblem problem = {.line = fmt::format("{}: {}", nodes, ended),
                          .exit_code = is_ours(code) ? code : static_cast<int>(ErrorKind::temporary)};
  const std::vector<std::string> lines = last_lines(words, kShownLines);
  if (lines.size() == 1) problem.line += ": " + lines.front();
  if (lines.size() > 1) problem.line += fmt::format(":\n  {}", fmt::join(lines, "\n  "));
  return problem;
}

LineReader::LineReader(EventLoop& loop, int fd, Tell tell) : loop_(loop), fd_(fd), tell_(std::move(tell)) {
  if (fd_ >= 0) loop_.watch_readable(fd_, [this] { read(); });
}

LineReader::~LineReader() {
  if (fd_ >= 0) loop_.forget(fd_);
}

void LineReader::read() {
  std::array<char, 4096> bytes{};
  const ssize_t count = ::read(fd_, bytes.data(), bytes.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) return loop_.forget(std::exchange(fd_, -1));
  text_.append(bytes.data(), static_cast<std::size_t>(count));
  for (std::size_t end = 0; (end = text_.find('\n')) != std::string::npos;) {
    const std::string line = text_.substr(0, end);
    text_.erase(0, end + 1);
    tell_(line);
  }
  if (text_.size() > kLongestLine) text_.clear();
}

}  // namespace fleetrun::launch
