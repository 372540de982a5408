#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "answering_run.h"
#include "base/error/error.h"
#include "base/json/json_value.h"
#include "base/system/file.h"
#include "base/system/marked_file.h"
#include "base/system/standard_output.h"
#include "commands.h"
#include "job/data_set_facts.h"
#include "job/parse_job.h"

namespace fleetrun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAnotherFolder = "--output_dir names another folder";
using Words = std::vector<std::string>;

// What is evaluated: the job file with its changes, and the model that these name.
struct Evaluation {
  Words job;
  std::string model;
};

bool is_job_file(const std::string& word) { return word.ends_with(".json"); }

bool was_typed(const job::ParsedJob& job, const std::string& key) {
  return std::any_of(job.values.begin(), job.values.end(), [&](const job::KeyValue& value) {
    return value.key == key && value.origin == "command line";
  });
}

// What the user names comes first, then what the job has trained, then what it would start from.
std::string find_model(const job::ParsedJob& job, const std::string& file) {
  const std::optional<std::string>& pretrained = job.spec.model.pretrained;
  if (pretrained && was_typed(job, "model.pretrained")) return *pretrained;
  const std::string trained = job.spec.output.dir + "/model.safetensors";
  std::error_code problem;
  if (fs::exists(trained, problem)) return trained;
  if (pretrained) return *pretrained;
  throw Error(
      ErrorKind::missing,
      fmt::format("found no model to evaluate: {} does not exist, and the job has no model.pretrained",
                  trained),
      fmt::format("fleetrun {} trains one, and model.pretrained=FILE after the job file names another",
                  file));
}

Evaluation of_job(Words words) {
  const std::string& file = words.front();
  const job::ParsedJob job = job::parse_job_file(file, {words.begin() + 1, words.end()});
  if (!job::evaluated_set(job.spec.data))
    throw Error(ErrorKind::config, fmt::format("{} has neither data.test nor data.split, on which to evaluate the model", file),
                "data.test.format=image_folder data.test.path=FOLDER after the job file names one");
  const std::string model = find_model(job, file);
  words.push_back("model.pretrained=" + json_quoted(model));
  words.emplace_back("model.new_head=error");
  return {.job = std::move(words), .model = model};
}

Evaluation find_evaluation(const Words& words) {
  if (words.empty() || !is_job_file(words.front()))
    throw Error(ErrorKind::usage,
                fmt::format("found {}, wanted a job file", words.empty() ? "no word" : words.front()),
                "fleetrun eval --help");
  return of_job(words);
}

// A folder that this command may write to: there is nothing yet under the names of a report, or a report of fleetrun eval.
void require_own_folder(const std::string& folder) {
  require_ours(folder + "/report.json", {.text = "\"written_by\": \"fleetrun eval\"", .place = 4},
               kAnotherFolder);
  if (fs::exists(folder + "/report.json")) return;
  for (const char* name : {"report.txt", "predictions.csv", "confusion.csv", "confusion.svg"})
    require_ours(
        folder + "/" + name, [](int) { return false; }, kAnotherFolder);
}

std::string find_folder(const FoundFlags& found, const std::string& model) {
  const fs::path folder = found.value("--output_dir").value_or(fs::path(model).parent_path() / "eval");
  const std::string path = (current_folder() / folder).lexically_normal();
  require_own_folder(path);
  make_directories(path);
  if (::access(path.c_str(), W_OK | X_OK) != 0)
    throw Error(ErrorKind::create,
                fmt::format("{}, for the report, may not be written to: {}", path, describe_errno(errno)),
                kAnotherFolder);
  return path;
}

}  // namespace

int run_eval_command(const FoundFlags& found, const Environment& environment) {
  const Evaluation evaluation = find_evaluation(found.rest);
  FoundFlags of_run = found;
  of_run.rest = evaluation.job;
  const bool json = found.has("--json");
  const std::string folder = find_folder(found, evaluation.model);
  AnsweringRun run(of_run, "--eval=" + folder, "eval", environment);
  if (const int code = run.run(json); code != 0) {
    std::error_code not_empty;
    fs::remove(folder, not_empty);
    return code;
  }
  const std::optional<std::string> answer = run.answer(json ? "eval.json" : "eval.txt");
  run.clean_up();
  if (answer) print_answer(*answer);
  return 0;
}

}  // namespace fleetrun
