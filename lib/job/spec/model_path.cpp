#include "job/spec/model_path.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::job {

std::string model_path(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code problem;
  if (!fs::is_directory(name, problem)) return name;
  const fs::path file = fs::path(name) / kModelFile;
  const bool is_there = fs::exists(file, problem);
  if (problem) throw file_error(problem.value(), "opening", file);
  if (!is_there)
    throw Error(ErrorKind::missing, fmt::format("the folder {} has no {}", name, kModelFile),
                "wanted a model file, a checkpoint, or the output.dir of a training that has ended");
  return file.string();
}

}  // namespace fleetrun::job
