#include <optional>

#include <fmt/format.h>

#include "answering_run.h"
#include "base/error/error.h"
#include "base/error/log.h"
#include "base/json/json_reader.h"
#include "base/system/standard_output.h"
#include "commands.h"
#include "job/parse_job.h"
#include "job/save_strategy.h"
#include "launch/cli/tune_table.h"

namespace fleetrun {
namespace {

using Words = std::vector<std::string>;

void check_words(const Words& words) {
  if (!words.empty() && words.front().ends_with(".json")) return;
  throw Error(ErrorKind::usage,
              fmt::format("found {}, wanted a job file", words.empty() ? "no word" : words.front()),
              "fleetrun tune --help");
}

void print_strategies(const Words& job, const Words& settings) {
  if (settings.empty()) return;
  print_answer("\nfor the job file:\n" + to_json_lines(launch::settings_as_job(settings)));
  Words words(job.begin() + 1, job.end());
  words.insert(words.end(), settings.begin(), settings.end());
  const job::SavedStrategy saved =
      save_strategy_of(job::parse_job_file(job.front(), words), job::PaddleVersion::paddle_3, false);
  for (const std::string& line : saved.left_out)
    log_line("fleetrun", "warning: left out of the strategy for PaddlePaddle: " + line);
  print_answer("\nfor PaddlePaddle (DistributedStrategy.load_from_prototxt):\n" + saved.text);
}

void print_result(JsonValue result, const FoundFlags& found) {
  const Words settings = launch::tuned_settings(result);
  if (found.has("--json")) {
    result.add("job", launch::settings_as_job(settings));
    return print_answer(to_json_lines(result));
  }
  print_answer(launch::tune_table(result));
  print_strategies(found.rest, settings);
}

}  // namespace

int run_tune_command(const FoundFlags& found, const Environment& environment) {
  check_words(found.rest);
  AnsweringRun run(found, "--tune=" + write_tune_request(launch::parse_tune_flags(found)), "tune",
                   {kTuneAnswer}, environment);
  if (const int code = run.run(found.has("--json")); code != 0) {
    run.clean_up_if_stopped();
    return code;
  }
  const std::optional<std::string> answer = run.answer(kTuneAnswer);
  run.clean_up();
  if (answer) print_result(read_json(*answer).root, found);
  return 0;
}

}  // namespace fleetrun
