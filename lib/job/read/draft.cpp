#include "job/read/draft.h"

#include <algorithm>

#include <fmt/format.h>

namespace fleetrun::job {
namespace {

constexpr std::size_t kMostLines = 100;  // problems that we print; nobody reads further
constexpr TextPosition kStartOfFile{1, 1};

// "train" for "train.epochs", "" for "train".
std::string parent_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

bool comes_before(const JsonProblem& a, const JsonProblem& b) {
  const bool a_on_command_line = a.position.line == 0;
  const bool b_on_command_line = b.position.line == 0;
  if (a_on_command_line != b_on_command_line) return b_on_command_line;
  return a.position < b.position;
}

}  // namespace

bool Draft::is_of_strategy_file(const std::string& path) const {
  return written.count(path) == 0 && strategy_file && strategy_file->written.count(path) != 0;
}

TextPosition Draft::where(const std::string& path) const {
  const auto found = written.find(path);
  if (found != written.end()) return found->second;
  return path.empty() ? kStartOfFile : where(parent_of(path));
}

std::string Draft::place_of(const std::string& path) const {
  if (!is_of_strategy_file(path)) return describe_place(file, where(path));
  return describe_place(strategy_file->name, strategy_file->written.at(path));
}

bool Draft::has_problem(const std::string& path) const {
  const auto concerns = [&](const JsonProblem& problem) {
    return problem.path == path || problem.path.starts_with(path + '.') ||
           problem.path.starts_with(path + '[');
  };
  return std::any_of(problems.begin(), problems.end(), concerns) ||
         (strategy_file &&
          std::any_of(strategy_file->problems.begin(), strategy_file->problems.end(), concerns));
}

void Draft::report(const std::string& path, const std::string& found) {
  if (is_of_strategy_file(path))
    strategy_file->problems.push_back({strategy_file->written.at(path), path, "found " + found});
  else
    problems.push_back({where(path), path, "found " + found});
}

std::string describe_place(const std::string& file, TextPosition position) {
  return position.line == 0 ? "command line" : fmt::format("{}:{}:{}", file, position.line, position.column);
}

std::string describe_problems(const std::string& file, std::vector<JsonProblem> problems) {
  std::stable_sort(problems.begin(), problems.end(), comes_before);
  std::string text;
  for (std::size_t i = 0; i < std::min(problems.size(), kMostLines); ++i) {
    const auto& [position, path, message] = problems[i];
    text += fmt::format("{}{}: {}{}{}", i == 0 ? "" : "\n", describe_place(file, position), path,
                        path.empty() ? "" : ": ", message);
  }
  if (problems.size() > kMostLines) text += fmt::format("\nand {} more", problems.size() - kMostLines);
  return text;
}

std::optional<std::string> alias_used(const Draft& draft, const std::string& path) {
  for (std::string around = path; !around.empty(); around = parent_of(around)) {
    const auto found = draft.written_as.find(around);
    if (found != draft.written_as.end())
      return found->second.empty() ? std::nullopt : std::optional("alias " + found->second);
  }
  return std::nullopt;
}

}  // namespace fleetrun::job
