#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "answering_run.h"
#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/json/json_value.h"
#include "base/system/file.h"
#include "base/system/marked_file.h"
#include "base/system/standard_output.h"
#include "commands.h"
#include "job/keys/job_keys.h"
#include "job/parse_job.h"
#include "job/read/overrides.h"
#include "job/spec/data_set_facts.h"
#include "job/spec/model_path.h"
#include "model_job.h"

namespace fleetrun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAnotherFolder = "--output_dir names another folder";
constexpr std::array kFiles = {"job.json",        "report.json",   "report.txt",
                               "predictions.csv", "confusion.csv", "confusion.svg"};
constexpr const char* kRecord = "/.fleetrun_eval";
constexpr std::size_t kMostRecord = 4096, kMostOfFile = std::size_t{4} << 30;  // bytes
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
  std::string trained = fmt::format("{}/{}", job.spec.output.dir, job::kModelFile);
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

// By which a file is known again (FNV-1a).
std::string digest_of(std::string_view content) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : content) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

// The files of a report that evaluations wrote into the folder, as lines "digest name".
std::string read_record(const std::string& folder) {
  std::error_code problem;
  const std::string path = folder + kRecord;
  return fs::is_regular_file(fs::symlink_status(path, problem)) ? read_file(path, kMostRecord) : "";
}

std::string line_of(const char* name, std::string_view content) {
  return fmt::format("{} {}\n", digest_of(content), name);
}

void record_files(const std::string& folder) {
  std::string lines;
  std::error_code problem;
  for (const char* name : kFiles)
    if (const std::string path = fmt::format("{}/{}", folder, name); fs::exists(path, problem))
      lines += line_of(name, read_file(path, kMostOfFile));
  write_file_atomically(folder + kRecord, lines);
}

// A folder that this command may write to: under each name of a report there is nothing yet, or what fleetrun eval wrote.
void require_own_folder(const std::string& folder) {
  const std::string record = read_record(folder);
  for (const char* name : kFiles) {
    const std::string path = fmt::format("{}/{}", folder, name);
    const auto is_recorded = [&](int fd) {
      return record.find(line_of(name, read_file(fd, path, kMostOfFile))) != std::string::npos;
    };
    require_ours(path, is_recorded, kAnotherFolder);
  }
}

// Beside the model. A checkpoint with another file in it would never be removed (checkpoint.keep), so its report is beside the checkpoint.
fs::path usual_folder(const std::string& model) {
  const fs::path home = (current_folder() / fs::path(model)).lexically_normal().parent_path();
  std::error_code problem;
  return (fs::exists(home / job::kManifestName, problem) ? home.parent_path() : home) / "eval";
}

std::string find_folder(const FoundFlags& found, const std::string& model) {
  const auto asked = found.value("--output_dir");
  const fs::path folder = asked ? fs::path(*asked) : usual_folder(model);
  std::string path = (current_folder() / folder).lexically_normal();
  require_own_folder(path);
  make_directories(path);
  return path;
}

// Takes back what find_folder() has made, unless there is an older report.
void leave_folder(const std::string& folder) {
  std::error_code problem;
  if (fs::exists(folder + "/report.txt", problem)) return;
  for (const char* name : {"/job.json", kRecord}) fs::remove(folder + name, problem);
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

// The change with a relative path made absolute from the current folder, because the user has not seen the folder of the job that is made
// here. checkpoint.dir starts at output.dir.
std::string from_current_folder(const job::Override& change, const job::Key& keys) {
  const job::Key* const key = job::find_key(keys, change.path);
  const JsonDocument json = read_json(change.value);
  const auto is_json = [&](JsonValue::Kind kind) { return json.complete && json.root.is(kind); };
  const bool is_path = key != nullptr && key->kind == job::ValueKind::path && change.path != "checkpoint.dir";
  if (!is_path || change.value.empty() || is_json(JsonValue::Kind::null)) return change.value;
  const std::string& path = is_json(JsonValue::Kind::text) ? json.root.text : change.value;
  return json_quoted((current_folder() / fs::path(path)).string());
}

// Changes of the job of a model file.
Words changes_of(const Words& words) {
  const job::Key keys = job::job_keys();
  Words changes;
  for (const job::Override& change : job::parse_overrides(words, keys))
    changes.push_back(fmt::format("{}={}", change.path, from_current_folder(change, keys)));
  return changes;
}

// The job of a model file, which find_folder's folder gets: other nodes read it, too.
Evaluation of_model(const FoundFlags& found) {
  const Words& words = found.rest;
  if (words.size() < 2 || words[1].find('=') != std::string::npos)
    throw Error(
        ErrorKind::usage, fmt::format("found the model {} without data, wanted MODEL DATA", words[0]),
        "MODEL is a model file, a checkpoint, or the output.dir of a training; DATA is a folder with a folder of images for each class, or a list of images");
  const Words changes = changes_of({words.begin() + 2, words.end()});
  const std::string model = job::model_path(words[0]);
  const JsonValue job = job_of_model(model, words[1]);
  Evaluation evaluation = {.model = model, .folder = find_folder(found, model)};
  evaluation.job = {evaluation.folder + "/job.json"};
  write_file_atomically(evaluation.job.front(), to_json_lines(job));
  record_files(evaluation.folder);
  evaluation.job.insert(evaluation.job.end(), changes.begin(), changes.end());
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
  AnsweringRun run(of_run, "--eval=" + evaluation.folder, "eval", {kEvalAnswer, kEvalTables}, environment);
  if (const int code = run.run(json); code != 0) return code;
  record_files(evaluation.folder);
  const std::optional<std::string> answer = run.answer(json ? kEvalAnswer : kEvalTables);
  run.clean_up();
  if (answer) print_answer(json ? *answer : answer->substr(kEvalTables.mark.size()));
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
