// fleetrun plot: the curves of several runs over each other.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/file.h"
#include "base/system/marked_file.h"
#include "base/system/standard_output.h"
#include "commands.h"
#include "launch/logs/log_folder.h"
#include "launch/logs/log_names.h"
#include "launch/page/overlay.h"

namespace fleetrun {
namespace {

// A log folder, or a history.csv.
launch::NamedHistory read_history_of(const std::string& name) {
  std::error_code problem;  // read_file() tells of it
  const std::string path =
      std::filesystem::is_directory(name, problem) ? name + "/" + launch::kHistoryName : name;
  launch::NamedHistory named = {name, launch::parse_history(read_file(path, launch::kMostHistoryBytes))};
  if (named.history.empty())
    throw Error(ErrorKind::data,
                fmt::format("{}: found no row with a step, wanted a history.csv of a run", path));
  return named;
}

}  // namespace

int run_plot_command(const FoundFlags& found, const Environment&) {
  if (found.rest.empty())
    throw Error(ErrorKind::usage, "found no run, wanted log folders or files history.csv",
                "fleetrun plot --help");
  std::vector<launch::NamedHistory> histories;
  for (const std::string& name : found.rest) histories.push_back(read_history_of(name));
  const std::string picture = launch::overlay_svg(histories);
  const std::string out = found.value("--output").value_or("-");
  if (out == "-") {
    print_answer(picture);
    return 0;
  }
  require_ours(out, Mark{.text = launch::kOverlayStart}, "choose another file with -o");
  replace_file(out, picture);
  return 0;
}

}  // namespace fleetrun
