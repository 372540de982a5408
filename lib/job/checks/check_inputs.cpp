#include "job/checks/check_inputs.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::job {
namespace {

namespace fs = std::filesystem;

struct Problem {
  ErrorKind kind;
  std::string text;
};
using Problems = std::vector<Problem>;

enum class Wanted { file, folder, either };

std::string_view name_of(Wanted wanted) {
  switch (wanted) {
    case Wanted::file:
      return "a file";
    case Wanted::folder:
      return "a folder";
    case Wanted::either:
      break;
  }
  return "a file or folder";
}

// Adds what is wrong with an input; true when it can be read.
bool check_input(const std::string& key, const std::string& path, Wanted wanted, Problems& problems) {
  const auto report = [&](ErrorKind kind, std::string_view found) {
    problems.push_back({kind, fmt::format("{}: {}: found {}, wanted {}", key, path, found, name_of(wanted))});
    return false;
  };
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (status.type() == fs::file_type::not_found) return report(ErrorKind::missing, "nothing");
  if (problem == std::errc::permission_denied)
    return report(ErrorKind::permission, "a folder on the way that may not be searched");
  if (problem) return report(ErrorKind::io, problem.message());
  const bool is_folder = fs::is_directory(status);
  if (!is_folder && !fs::is_regular_file(status))
    return report(ErrorKind::config, "a device, pipe or socket");
  if (is_folder && wanted == Wanted::file) return report(ErrorKind::config, "a folder");
  if (!is_folder && wanted == Wanted::folder) return report(ErrorKind::config, "a file");
  if (::access(path.c_str(), is_folder ? R_OK | X_OK : R_OK) != 0)
    return report(ErrorKind::permission, fmt::format("one that may not be read ({})", describe_errno(errno)));
  return true;
}

// Those that are not hidden.
int count_folders(const std::string& path) {
  std::error_code ignored;  // a folder that is gone has none
  int count = 0;
  for (fs::directory_iterator entry(path, ignored), end; !ignored && entry != end; entry.increment(ignored))
    if (entry->is_directory(ignored) && !entry->path().filename().string().starts_with('.')) ++count;
  return count;
}

void check_class_folders(const std::string& key, const DataSetSpec& set, const ModelSpec& model,
                         Problems& problems) {
  const int classes = count_folders(set.path);
  if (classes == 0)
    problems.push_back(
        {ErrorKind::data,
         fmt::format("{}.path: {}: found no folder in it, wanted one for each class", key, set.path)});
  else if (model.class_dim && *model.class_dim < classes)
    problems.push_back({ErrorKind::config,
                        fmt::format("model.class_dim: found {}, wanted at least {}: {} has {} class folders",
                                    *model.class_dim, classes, set.path, classes)});
}

void check_data_set(const std::string& key, const DataSetSpec& set, const ModelSpec& model,
                    Problems& problems) {
  switch (set.format) {
    case DataFormat::image_folder:
      if (check_input(key + ".path", set.path, Wanted::folder, problems))
        check_class_folders(key, set, model, problems);
      break;
    case DataFormat::image_list:
      check_input(key + ".list", set.list, Wanted::file, problems);
      check_input(key + ".root", set.root, Wanted::folder, problems);
      break;
    case DataFormat::cifar_bin:
      check_input(key + ".path", set.path, Wanted::either, problems);
      break;
    case DataFormat::idx:
      check_input(key + ".images", set.images, Wanted::file, problems);
      check_input(key + ".labels", set.labels, Wanted::file, problems);
      break;
    case DataFormat::synthetic:
      break;
  }
}

// A training that resumes gets its weights from the checkpoint. Only the ranks can tell whether one of these folders has a good one.
bool may_resume(const CheckpointSpec& checkpoint) {
  if (checkpoint.resume != "auto") return checkpoint.resume != "never";
  return checkpoint.dir && count_folders(*checkpoint.dir) > 0;
}

ErrorKind worst_of(const Problems& problems) {
  for (const ErrorKind kind : {ErrorKind::missing, ErrorKind::permission, ErrorKind::io, ErrorKind::data})
    for (const Problem& problem : problems)
      if (problem.kind == kind) return kind;
  return ErrorKind::config;
}

}  // namespace

void check_inputs(const JobSpec& spec) {
  Problems problems;
  check_data_set("data.train", spec.data.train, spec.model, problems);
  if (spec.data.test) check_data_set("data.test", *spec.data.test, spec.model, problems);
  if (spec.model.pretrained && !may_resume(spec.checkpoint))
    check_input("model.pretrained", *spec.model.pretrained, Wanted::file, problems);
  const std::string& resume = spec.checkpoint.resume;
  if (resume != "auto" && resume != "never")
    check_input("checkpoint.resume", resume, Wanted::folder, problems);
  if (problems.empty()) return;
  std::string text;
  for (const Problem& problem : problems) text += (text.empty() ? "" : "\n") + problem.text;
  throw Error(worst_of(problems), text);
}

}  // namespace fleetrun::job
