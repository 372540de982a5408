#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "answering_run.h"
#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/json/json_value.h"
#include "base/run/eval_folder.h"
#include "base/system/file.h"
#include "base/system/standard_output.h"
#include "base/system/unique_fd.h"
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

using Words = std::vector<std::string>;

// The job that this evaluation makes for a model file, for as long as the ranks need it. It is in the folder of the report, because other
// nodes read it, too.
class JobFile {
 public:
  JobFile(const std::string& folder, const JsonValue& job)
      : path_(folder + "/" + kEvalJobPrefix + "XXXXXX" + kEnding) {
    file_.reset(::mkostemps(path_.data(), static_cast<int>(std::string_view(kEnding).size()), O_CLOEXEC));
    if (!file_) throw Error(ErrorKind::create, fmt::format("creating {}: {}", path_, describe_errno(errno)));
    ::flock(file_.get(), LOCK_EX);
    try {
      write_all(file_.get(), to_json_lines(job), path_);
    } catch (const Error&) {
      ::unlink(path_.c_str());
      throw;
    }
  }
  ~JobFile() { ::unlink(path_.c_str()); }
  JobFile(const JobFile&) = delete;
  JobFile& operator=(const JobFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  static constexpr const char* kEnding = ".json";

  std::string path_;
  UniqueFd file_;  // locked
};

// Those of evaluations that were killed: nobody holds their locks.
void remove_old_job_files(const std::string& folder) {
  constexpr auto kOld = std::chrono::minutes(1);  // its maker had the time to lock it
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kEvalJobPrefix) ||
        fs::file_time_type::clock::now() - entry.last_write_time(problem) < kOld)
      continue;
    const UniqueFd file(::open(entry.path().c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) fs::remove(entry.path(), problem);
  }
}

struct Evaluation {
  Words job;           // the job file and its changes
  std::string model;   // that these name
  std::string folder;  // of the report
  bool is_new_folder = false;
  std::unique_ptr<JobFile> job_file = {};  // without a job of the user
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

// Beside the model. A checkpoint with another file in it would never be removed (checkpoint.keep), so its report is beside the checkpoint.
fs::path usual_folder(const std::string& model) {
  const fs::path home = (current_folder() / fs::path(model)).lexically_normal().parent_path();
  std::error_code problem;
  return (fs::exists(home / job::kManifestName, problem) ? home.parent_path() : home) / "eval";
}

Evaluation prepare_folder(const FoundFlags& found, const std::string& model) {
  const auto asked = found.value("--output_dir");
  const fs::path folder = asked ? fs::path(*asked) : usual_folder(model);
  std::string path = (current_folder() / folder).lexically_normal();
  require_own_eval_folder(path);
  std::error_code problem;
  const bool is_new = !fs::exists(path, problem);
  make_directories(path);
  return {.job = {}, .model = model, .folder = std::move(path), .is_new_folder = is_new};
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
  Evaluation evaluation = prepare_folder(found, model);
  evaluation.job = std::move(words);
  return evaluation;
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

Evaluation of_model(const FoundFlags& found) {
  const Words& words = found.rest;
  if (words.size() < 2 || words[1].find('=') != std::string::npos)
    throw Error(
        ErrorKind::usage, fmt::format("found the model {} without data, wanted MODEL DATA", words[0]),
        "MODEL is a model file, a checkpoint, or the output.dir of a training; DATA is a folder with a folder of images for each class, or a list of images");
  const Words changes = changes_of({words.begin() + 2, words.end()});
  const std::string model = job::model_path(words[0]);
  const JsonValue job = job_of_model(model, words[1]);
  Evaluation evaluation = prepare_folder(found, model);
  remove_old_job_files(evaluation.folder);
  evaluation.job_file = std::make_unique<JobFile>(evaluation.folder, job);
  evaluation.job = {evaluation.job_file->path()};
  evaluation.job.insert(evaluation.job.end(), changes.begin(), changes.end());
  return evaluation;
}

Evaluation find_evaluation(const FoundFlags& found) {
  if (found.rest.empty())
    throw Error(ErrorKind::usage, "found no word, wanted a job file, or a model file and its data",
                "fleetrun eval --help");
  return found.rest.front().ends_with(".json") ? of_job(found) : of_model(found);
}

Evaluation find_evaluation_or_tell(const FoundFlags& found, const Environment& environment) {
  try {
    return find_evaluation(found);
  } catch (const Error& error) {
    tell_nodes_of_run(found, environment, error);
    throw;
  }
}

int evaluate(Evaluation& evaluation, const FoundFlags& found, const Environment& environment) {
  FoundFlags of_run = found;
  of_run.rest = evaluation.job;
  const bool json = found.has("--json");
  AnsweringRun run(of_run, "--eval=" + evaluation.folder, "eval", {kEvalAnswer, kEvalTables}, environment);
  const int code = run.run(json);
  evaluation.job_file.reset();  // before the answer, because without a reader it ends this process
  if (code != 0) {
    run.clean_up_if_stopped();
    return code;
  }
  const std::optional<std::string> answer = run.answer(json ? kEvalAnswer : kEvalTables);
  run.clean_up();
  if (answer) print_answer(json ? *answer : answer->substr(kEvalTables.mark.size()));
  return 0;
}

void leave_folder(Evaluation& evaluation) {
  evaluation.job_file.reset();
  if (evaluation.is_new_folder) ::rmdir(evaluation.folder.c_str());  // if it is empty
}

}  // namespace

int run_eval_command(const FoundFlags& found, const Environment& environment) {
  Evaluation evaluation = find_evaluation_or_tell(found, environment);
  try {
    const int code = evaluate(evaluation, found, environment);
    if (code != 0) leave_folder(evaluation);
    return code;
  } catch (const Error&) {
    leave_folder(evaluation);
    throw;
  }
}

}  // namespace fleetrun
