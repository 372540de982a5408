#include <algorithm>
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
#include "model_job.h"

namespace fleetrun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAnotherFolder = "--output_dir names another folder";
using Words = std::vector<std::string>;

struct Evaluation {
  Words job;           // the job file and its changes
  std::string model;   // that these name
  std::string folder;  // of the report
};

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

// A folder that this command may write to: there is nothing yet under the names of a report, or a report of fleetrun eval.
void require_own_folder(const std::string& folder) {
  require_ours(folder + "/report.json", {.text = "\"written_by\": \"fleetrun eval\"", .place = 4},
               kAnotherFolder);
  if (fs::exists(folder + "/report.json")) return;
  for (const char* name : {"report.txt", "job.json", "predictions.csv", "confusion.csv", "confusion.svg"})
    require_ours(
        folder + "/" + name, [](int) { return false; }, kAnotherFolder);
}

std::string find_folder(const FoundFlags& found, const std::string& model) {
  const fs::path folder = found.value("--output_dir").value_or(fs::path(model).parent_path() / "eval");
  const std::string path = (current_folder() / folder).lexically_normal();
  require_own_folder(path);
  make_directories(path);
  if (const std::string report = path + "/report.json"; !fs::exists(report))  // it claims the folder
    write_file_atomically(report, to_json_lines(JsonValue::object({{"written_by", "fleetrun eval"}})));
  return path;
}

// Takes back what find_folder() has made, unless there is an older report.
void leave_folder(const std::string& folder) {
  std::error_code problem;
  if (fs::exists(folder + "/report.txt", problem)) return;
  for (const char* name : {"/report.json", "/job.json"}) fs::remove(folder + name, problem);
  fs::remove(folder, problem);  // if it is empty
}

Evaluation of_job(const FoundFlags& found) {
  Words words = found.rest;
  const std::string& file = words.front();
  const job::ParsedJob job = job::parse_job_file(file, {words.begin() + 1, words.end()});
  if (!job::evaluated_set(job.spec.data))
    throw Error(ErrorKind::config,
                fmt::format("{} has neither data.test nor data.split, on which to evaluate the model", file),
                "data.test.format=image_folder data.test.path=FOLDER after the job file names one");
  const std::string model = find_model(job, file);
  words.push_back("model.pretrained=" + json_quoted(model));
  words.emplace_back("model.new_head=error");
  return {.job = std::move(words), .model = model, .folder = find_folder(found, model)};
}

// The job of a model file, which find_folder's folder gets: other nodes read it, too.
Evaluation of_model(const FoundFlags& found) {
  const Words& words = found.rest;
  if (words.size() < 2 || words[1].find('=') != std::string::npos)
    throw Error(ErrorKind::usage,
                fmt::format("found the model {} without data, wanted MODEL.safetensors DATA", words[0]),
                "DATA is a folder with a folder of images for each class, or a list of images");
  const JsonValue job = job_of_model(words[0], words[1]);
  Evaluation evaluation = {.model = words[0], .folder = find_folder(found, words[0])};
  evaluation.job = {evaluation.folder + "/job.json"};
  write_file_atomically(evaluation.job.front(), to_json_lines(job));
  evaluation.job.insert(evaluation.job.end(), words.begin() + 2, words.end());
  return evaluation;
}

Evaluation find_evaluation(const FoundFlags& found) {
  if (found.rest.empty())
    throw Error(ErrorKind::usage, "found no word, wanted a job file, or a model file and its data",
                "fleetrun eval --help");
  return found.rest.front().ends_with(".json") ? of_job(found) : of_model(found);
}

int evaluate(const Evaluation& evaluation, const FoundFlags& found, const Environment& environment) {
  FoundFlags of_run = found;
  of_run.rest = evaluation.job;
  const bool json = found.has("--json");
  AnsweringRun run(of_run, "--eval=" + evaluation.folder, "eval", environment);
  if (const int code = run.run(json); code != 0) return code;
  const std::optional<std::string> answer = run.answer(json ? "eval.json" : "eval.txt");
  run.clean_up();
  if (answer) print_answer(*answer);
  return 0;
}

}  // namespace

int run_eval_command(const FoundFlags& found, const Environment& environment) {
  const Evaluation evaluation = find_evaluation(found);
  try {
    const int code = evaluate(evaluation, found, environment);
    if (code != 0) leave_folder(evaluation.folder);
    return code;
  } catch (const Error&) {
    leave_folder(evaluation.folder);
    throw;
  }
}

}  // namespace fleetrun
