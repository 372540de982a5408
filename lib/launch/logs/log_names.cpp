#include "launch/logs/log_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace fleetrun::launch {
namespace {

bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }

struct Numbered {
  std::string_view start, end;
};
constexpr std::array<Numbered, 6> kOfRanks = {{{"workerlog.", ""},
                                               {"workerlog.", ".err"},
                                               {"error.", ".json"},
                                               {"backup_env.", ".json"},
                                               {"stacks.", ""},
                                               {"collectives.", ".json"}}};
constexpr std::array<std::string_view, 9> kOfRuns = {kReportName,      kHistoryName,   kPageName,
                                                     kTrainReportName, kEndpointsName, kNodesName,
                                                     kReserveName,     kTimesName,     kControlName};

}  // namespace

bool is_numbered(std::string_view name, std::string_view start, std::string_view end) {
  if (name.size() <= start.size() + end.size() || !name.starts_with(start) || !name.ends_with(end))
    return false;
  const std::string_view number = name.substr(start.size(), name.size() - start.size() - end.size());
  return std::all_of(number.begin(), number.end(), is_digit);
}

bool is_of_a_rank(std::string_view name) {
  return std::any_of(kOfRanks.begin(), kOfRanks.end(),
                     [&](const Numbered& kind) { return is_numbered(name, kind.start, kind.end); });
}

bool is_error_file(std::string_view name) { return is_numbered(name, "error.", ".json"); }

bool is_attempt(std::string_view name) { return is_numbered(name, "attempt-", ""); }

std::string_view final_name(std::string_view name) {
  constexpr std::string_view kEnd = ".tmp";
  if (!name.ends_with(kEnd)) return name;
  const std::string_view numbered = name.substr(0, name.size() - kEnd.size());
  const auto dot = numbered.rfind('.');
  return dot != std::string_view::npos && is_numbered(numbered, numbered.substr(0, dot + 1), "")
             ? numbered.substr(0, dot)
             : name;
}

bool is_of_a_run(std::string_view name) {
  const std::string_view whole = final_name(name);
  return is_of_a_rank(whole) || std::find(kOfRuns.begin(), kOfRuns.end(), whole) != kOfRuns.end();
}

bool is_shown(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view base = name.substr(slash + 1);
    return is_attempt(name.substr(0, slash)) && is_of_a_rank(base) && is_shown(base);
  }
  return is_of_a_run(name) && !is_temporary(name) && !name.starts_with('.') &&
         !name.starts_with("backup_env.");
}

bool is_place_of_a_run(const std::string& folder, const std::string& path) {
  std::error_code problem;
  const std::filesystem::path file(path);
  const auto around =
      std::filesystem::weakly_canonical(std::filesystem::absolute(file, problem).parent_path(), problem);
  const auto logs = std::filesystem::weakly_canonical(std::filesystem::absolute(folder, problem), problem);
  const auto below = (around / file.filename()).lexically_relative(logs);
  if (problem || below.empty()) return false;
  const std::string first = *below.begin();
  return is_of_a_run(first) || is_attempt(first) || first == kPreviousFolder;
}

bool is_temporary(std::string_view name) { return final_name(name) != name; }

int number_in(std::string_view name) {
  const auto* const start = std::find_if(name.begin(), name.end(), is_digit);
  int number = std::numeric_limits<int>::max();  // stays when the digits say more than that
  std::from_chars(start, name.end(), number);
  return number;
}

std::string newest_logs(const std::string& folder) {
  int newest = -1;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename();
    if (is_numbered(name, "workerlog.", "")) return folder;
    if (is_attempt(name)) newest = std::max(newest, number_in(name));
  }
  return newest < 0 ? folder : fmt::format("{}/attempt-{}", folder, newest);
}

}  // namespace fleetrun::launch
