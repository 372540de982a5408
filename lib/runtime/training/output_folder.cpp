#include "runtime/training/output_folder.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <ostream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/observe/trace.h"

namespace fleetrun::runtime {
namespace {

std::string weights_path(const job::OutputSpec& output) { return output.dir + "/model.safetensors"; }

bool is_taken(const std::string& path) {
  std::error_code problem;
  return std::filesystem::exists(std::filesystem::symlink_status(path, problem));
}

std::string free_weights_path(const job::OutputSpec& output) {
  for (int number = 1;; ++number) {
    const std::string path = fmt::format("{}/model.{}.safetensors", output.dir, number);
    if (!is_taken(path)) return path;
  }
}

// Why the weights must not replace what is at `path`; "" when they may.
std::string problem_with(const std::string& path) {
  try {
    require_own_weights(path, "");
    return "";
  } catch (const Error& problem) {
    return problem.message();
  }
}

}  // namespace

void prepare_output(const job::OutputSpec& output) {
  const std::string& folder = output.dir;
  const char* const way_out = "output.dir=FOLDER after the job file chooses another one";
  make_directories(folder);
  require_own_weights(weights_path(output), way_out);
  if (output.trace) require_own_trace(output, way_out);
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error(
        ErrorKind::create,
        fmt::format("output.dir is {}, which may not be written to: {}", folder, describe_errno(errno)),
        way_out);
}

void save_result(const job::OutputSpec& output, const Program& program, const Storage& storage,
                 std::ostream& out) {
  std::string path = weights_path(output);
  if (const std::string problem = problem_with(path); !problem.empty()) {
    path = free_weights_path(output);
    out << "warning: " << printable(problem) << "; the weights go to " << path << std::endl;
  }
  save_weights(path, program, storage);
  out << "weights: " << path << std::endl;
}

}  // namespace fleetrun::runtime
