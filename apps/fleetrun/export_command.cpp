#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "become.h"
#include "commands.h"
#include "job/parse_job.h"
#include "launch/plan/program.h"

namespace fleetrun {
namespace {

constexpr std::string_view kEnding = ".safetensors";

struct ExportOptions {
  std::string names;
  std::string input;  // a job file or a model
  std::vector<std::string> overrides;
  std::string output;

  bool is_model() const { return input.ends_with(kEnding); }
};

ExportOptions parse_export_options(const FoundFlags& found) {
  const auto refuse = [](const std::string& message) {
    return Error(ErrorKind::usage, message, "fleetrun export --help");
  };
  const std::vector<std::string>& words = found.rest;
  if (words.empty()) throw refuse("found no job file and no model, wanted one");
  const std::string& last = words.back();
  if (words.size() < 2 || !last.ends_with(kEnding) || last.find('=') != std::string::npos)
    throw refuse(fmt::format("found {} as the last word, wanted a file to write, OUT{}", last, kEnding));
  ExportOptions options = {.names = found.value("--names").value_or(kExportNames.front()),
                           .input = words.front(),
                           .overrides = {words.begin() + 1, words.end() - 1},
                           .output = last};
  if (std::ranges::find(kExportNames, options.names) == kExportNames.end())
    throw refuse(fmt::format("--names is {}, must be {}", options.names, fmt::join(kExportNames, " or ")));
  if (options.is_model() && !options.overrides.empty())
    throw refuse(fmt::format(
        "found {} between the model {} and the file to write, wanted nothing: only a job file has keys",
        options.overrides.front(), options.input));
  return options;
}

}  // namespace

int run_export_command(const FoundFlags& found, const Environment&) {
  const ExportOptions options = parse_export_options(found);
  if (!options.is_model())
    for (const std::string& note : job::parse_job_file(options.input, options.overrides).notes)
      log_line("fleetrun", "note: " + note);
  launch::Program program = launch::find_worker({"--export", options.output, options.names, options.input});
  program.argv.insert(program.argv.end(), options.overrides.begin(), options.overrides.end());
  become(program);
}

}  // namespace fleetrun
