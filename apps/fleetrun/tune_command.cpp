#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/json/json_reader.h"
#include "base/system/file.h"
#include "base/system/standard_output.h"
#include "commands.h"
#include "job/parse_job.h"
#include "job/save_strategy.h"
#include "launch/cli/command_line.h"
#include "launch/cli/tune_table.h"
#include "launch/launch.h"
#include "launch/schedulers/read_values.h"
#include "launch/schedulers/settle_nodes.h"
#include "words_of_run.h"

namespace fleetrun {
namespace {

using Words = std::vector<std::string>;

constexpr std::size_t kMostTunedBytes = 16 << 20;

void check_words(const Words& words) {
  if (!words.empty() && words.front().ends_with(".json")) return;
  throw Error(ErrorKind::usage,
              fmt::format("found {}, wanted a job file", words.empty() ? "no word" : words.front()),
              "fleetrun tune --help");
}

// For the logs of the ranks, if the user named no folder. Stays where it is when something went wrong, because the report names its files.
std::string make_folder(const Environment& environment) {
  const std::string parent = environment.get_or("TMPDIR", "/tmp");
  std::string path = parent + "/fleetrun-tune-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    throw Error(ErrorKind::create, fmt::format("creating a folder in {}: {}", parent, describe_errno(errno)),
                "set TMPDIR to another folder, or --log_dir");
  return path;
}

// Starts the ranks as a run of the job does.
int run_ranks(launch::LaunchOptions options, const Words& words,
              const std::optional<launch::Allocation>& allocation, const Environment& environment) {
  if (options.log_level.origin == launch::Origin::fallback)
    options.log_level.value = launch::LogLevel::warning;
  return launch::launch(options, environment, allocation, words);
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
  Words words = {"--tune=" + write_tune_request(launch::parse_tune_flags(found))};
  for (const std::string& word : words_of_run(found, "")) words.push_back(word);
  const launch::SchedulerFacts facts = {
      environment, [](const std::string& path) { return read_file(path, launch::kMostListBytes); }};
  std::optional<launch::Allocation> allocation;
  launch::LaunchOptions options =
      launch::parse_launch_options(
          words, environment, launch::CalledAs::fleetrun, {},
          [&](launch::LaunchOptions& some) { allocation = settle_nodes(some, facts); })
          .options;
  const bool temporary = options.log_dir.origin == launch::Origin::fallback;
  if (temporary) options.log_dir.value = make_folder(environment);
  const std::string folder = options.log_dir.value;
  if (found.has("--json")) options.console.value = {.text = "none", .ranges = {}};  // only JSON on stdout
  if (const int code = run_ranks(std::move(options), words, allocation, environment); code != 0) return code;
  const std::string path = folder + "/tune.json";
  std::optional<JsonValue> result;  // nothing: rank 0 is on another node, which prints it
  if (std::filesystem::exists(path)) result = read_json(read_file(path, kMostTunedBytes)).root;
  if (temporary) std::filesystem::remove_all(folder);
  if (result) print_result(*result, found);
  return 0;
}

}  // namespace fleetrun
