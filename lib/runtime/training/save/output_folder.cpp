#include "runtime/training/save/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <ostream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/file.h"
#include "base/text/printable.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/observe/scored_epoch.h"
#include "runtime/observe/trace.h"

namespace fleetrun::runtime {
namespace {

constexpr const char* kEnding = ".safetensors";

std::string weights_path(const job::OutputSpec& output) { return output.dir + "/model.safetensors"; }

// Locks the folder itself, so that no file of ours lies among the user's. Some file systems have no such locks.
UniqueFd claim(const std::string& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(ErrorKind::create,
                fmt::format("another training that is under way saves its results in {}", folder),
                kAnotherOutput);
  return fd;
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

bool is_same(const StoredTensor& stored, const PlainTensor& tensor) {
  const std::string_view bytes(reinterpret_cast<const char*>(tensor.values.data()),
                               tensor.values.size() * sizeof(float));
  return stored.dtype == DType::f32 && stored.shape == tensor.shape && stored.bytes == bytes;
}

// Whatever its metadata say.
bool has_weights(const std::string& path, const PlainTensors& weights) {
  if (!is_taken(path)) return false;
  try {
    const Safetensors file = read_safetensors(path);
    return file.tensors.size() == weights.size() && std::ranges::all_of(weights, [&](const auto& named) {
             const auto found = file.tensors.find(named.first);
             return found != file.tensors.end() && is_same(found->second, named.second);
           });
  } catch (const Error&) {
    return false;  // it is damaged
  }
}

// Weights of a best epoch, which set_best_aside() never replaces either.
bool has_score(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return fd && read_metadata(fd.get()).contains(kScoreKey);
}

// Gives the file a second name, with its content as it is now.
void copy_or_link(const std::string& path, const std::string& copy) {
  if (::linkat(AT_FDCWD, path.c_str(), AT_FDCWD, copy.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
  std::error_code problem;  // some file systems have no links, and a link may lead to another one
  std::filesystem::copy_file(path, copy, problem);
  if (problem)
    throw Error(ErrorKind::create, fmt::format("copying {} to {}: {}", path, copy, problem.message()));
}

}  // namespace

bool is_taken(const std::string& path) {
  std::error_code problem;
  return std::filesystem::exists(std::filesystem::symlink_status(path, problem));
}

std::string beside(const std::string& path, const std::string& word) {
  const std::size_t end = path.size() - std::string_view(kEnding).size();
  return fmt::format("{}.{}{}", path.substr(0, end), word, kEnding);
}

std::string free_path_beside(const std::string& path) {
  for (int number = 1;; ++number)
    if (std::string free = beside(path, std::to_string(number)); !is_taken(free)) return free;
}

UniqueFd prepare_output(const job::OutputSpec& output) {
  const std::string& folder = output.dir;
  make_directories(folder);
  UniqueFd claimed = claim(folder);
  require_own_weights(weights_path(output), kAnotherOutput);
  if (output.trace) require_own_trace(output, kAnotherOutput);
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error(
        ErrorKind::create,
        fmt::format("output.dir is {}, which may not be written to: {}", folder, describe_errno(errno)),
        kAnotherOutput);
  return claimed;
}

job::OutputSpec find_output(job::OutputSpec output, const UniqueFd& claimed) {
  if (const auto now = path_now(claimed, output.dir))
    output.dir = *now;
  else if (claimed && is_taken(output.dir))
    claim(output.dir);  // it is free, or this throws
  return output;
}

void save_result(const job::OutputSpec& output, const PlainTensors& weights, const Metadata& about,
                 std::ostream& out) {
  make_directories(output.dir);
  std::string path = weights_path(output);
  if (const std::string problem = problem_with(path); !problem.empty()) {
    path = free_path_beside(path);
    out << "warning: " << printable(problem) << "; the weights go to " << printable(path) << std::endl;
  } else if (const std::string kept = keep_earlier_weights(path); !kept.empty()) {
    out << "weights of an earlier run: " << printable(kept) << std::endl;
  }
  save_weights(path, weights, about);
  out << "weights: " << printable(path) << std::endl;
}

void save_result_again(const job::OutputSpec& output, const PlainTensors& weights, const Metadata& about,
                       std::ostream& out) {
  const std::string path = weights_path(output);
  if (!problem_with(path).empty() || !has_weights(path, weights))
    return save_result(output, weights, about, out);
  out << "weights: " << printable(path) << std::endl;
}

std::string keep_earlier_weights(const std::string& path) {
  if (!is_taken(path)) return "";
  std::string kept = beside(path, "previous");
  if (has_score(kept) || !problem_with(kept).empty()) kept = free_path_beside(path);
  const std::string temporary = fmt::format("{}.{}.tmp", kept, ::getpid());
  copy_or_link(path, temporary);
  const int problem = ::rename(temporary.c_str(), kept.c_str()) == 0 ? 0 : errno;
  ::unlink(temporary.c_str());  // it stays if both names have one file
  if (problem != 0)
    throw Error(ErrorKind::create, fmt::format("creating {}: {}", kept, describe_errno(problem)));
  return kept;
}

}  // namespace fleetrun::runtime
