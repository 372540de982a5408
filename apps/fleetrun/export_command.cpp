#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

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
  std::string job;
  std::vector<std::string> overrides;
  std::string output;
};

ExportOptions parse_export_options(const std::vector<std::string>& words) {
  const auto refuse = [](const std::string& message) {
    return Error(ErrorKind::usage, message, "fleetrun export --help");
  };
  if (words.empty()) throw refuse("found no job file, wanted one");
  const std::string& last = words.back();
  if (words.size() < 2 || !last.ends_with(kEnding) || last.find('=') != std::string::npos)
    throw refuse(fmt::format("found {} as the last word, wanted a file to write, OUT{}", last, kEnding));
  return {.job = words.front(), .overrides = {words.begin() + 1, words.end() - 1}, .output = last};
}

}  // namespace

int run_export_command(const FoundFlags& found, const Environment&) {
  const ExportOptions options = parse_export_options(found.rest);
  const job::ParsedJob job = job::parse_job_file(options.job, options.overrides);
  for (const std::string& note : job.notes) log_line("fleetrun", "note: " + note);
  launch::Program program = launch::find_worker({"--export", options.output, options.job});
  program.argv.insert(program.argv.end(), options.overrides.begin(), options.overrides.end());
  become(program);
}

}  // namespace fleetrun
