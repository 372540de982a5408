#include "launch/logs/rank_logs.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/logs/log_names.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kLogName = "workerlog.";
constexpr const char* kErrorsEnd = ".err";

}  // namespace

std::string RankLog::name() const { return std::to_string(rank) + (errors ? kErrorsEnd : ""); }

std::vector<RankLog> find_logs(const std::string& folder) {
  std::vector<RankLog> logs;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename();
    int rank = -1;
    if (!name.starts_with(kLogName)) continue;
    const bool errors = name.ends_with(kErrorsEnd);
    const char* end = name.data() + name.size() - (errors ? std::string_view(kErrorsEnd).size() : 0);
    const auto [stop, wrong] = std::from_chars(name.data() + kLogName.size(), end, rank);
    if (wrong == std::errc{} && stop == end) logs.push_back({rank, errors});
  }
  if (problem.value() == EACCES) throw file_error(problem.value(), "opening", folder);
  if (logs.empty())
    throw Error(ErrorKind::missing, fmt::format("{}/ has no logs of a run", folder),
                "--log_dir names the folder of the run");
  std::sort(logs.begin(), logs.end());
  return logs;
}

std::vector<int> kept_attempts(const std::string& folder) {
  std::vector<int> attempts;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem))
    if (const std::string name = entry.path().filename(); is_attempt(name))
      attempts.push_back(number_in(name));
  std::sort(attempts.begin(), attempts.end());
  return attempts;
}

int attempt_in(const std::string& folder, int first) {
  const std::string name = std::filesystem::path(folder).filename();
  if (is_attempt(name)) return number_in(name);
  const std::vector<int> kept = kept_attempts(folder);
  return kept.empty() ? first : std::max(first, kept.back() + 1);
}

std::uint64_t inode_of(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

std::vector<std::string> attempts_since(const std::string& folder, const std::string& name,
                                        std::uint64_t inode) {
  const auto path_of = [&](int attempt) {
    return fmt::format("{}/attempt-{}/workerlog.{}", folder, attempt, name);
  };
  std::vector<std::string> paths;
  bool found = false;
  for (const int attempt : kept_attempts(folder)) {
    const std::uint64_t present = inode_of(path_of(attempt));
    if (found && present != 0) paths.push_back(path_of(attempt));
    found = found || present == inode;
  }
  return paths;
}

}  // namespace fleetrun::launch
