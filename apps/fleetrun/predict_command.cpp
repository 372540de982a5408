#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/run/predict_request.h"
#include "become.h"
#include "commands.h"
#include "job/parse_job.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/plan/program.h"

namespace fleetrun {
namespace {

constexpr const char* kHelp = "fleetrun predict --help";

// 0 without the flag.
int count_of(const FoundFlags& found, const char* flag) {
  const auto text = found.value(flag);
  return text ? launch::parse_count(flag, *text) : 0;
}

PredictFormat format_of(const FoundFlags& found) {
  if (found.has("--json") && found.has("--csv"))
    throw Error(ErrorKind::usage, "found --json and --csv, wanted one of them", kHelp);
  return found.has("--json")  ? PredictFormat::json
         : found.has("--csv") ? PredictFormat::csv
                              : PredictFormat::text;
}

void require_model_and_image(const std::vector<std::string>& words) {
  if (words.empty()) throw Error(ErrorKind::usage, "found no model, wanted MODEL and images", kHelp);
  if (words.size() < 2)
    throw Error(ErrorKind::usage,
                fmt::format("found no image after the model {}, wanted files, folders or -", words.front()),
                kHelp);
  if (words.front().ends_with(".json"))
    throw Error(ErrorKind::usage, fmt::format("found the job file {}, wanted a model file", words.front()),
                fmt::format("fleetrun predict --job={} MODEL IMAGE...", words.front()));
}

}  // namespace

int run_predict_command(const FoundFlags& found, const Environment&) {
  require_model_and_image(found.rest);
  const PredictRequest request = {.top = count_of(found, "--top"),
                                  .batch_size = count_of(found, "--batch_size"),
                                  .ranks = count_of(found, "--nproc_per_node"),
                                  .format = format_of(found)};
  const std::string job = found.value("--job").value_or("");
  if (!job.empty())
    for (const std::string& note : job::parse_job_file(job, {}).notes) log_line("fleetrun", "note: " + note);
  launch::Program program = launch::find_worker({"--predict", write_predict_request(request), job});
  program.argv.insert(program.argv.end(), found.rest.begin(), found.rest.end());
  become(program);
}

}  // namespace fleetrun
