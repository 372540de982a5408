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
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/system/file.h"
#include "base/text/printable.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/observe/trace.h"

namespace fleetrun::runtime {
namespace {

constexpr const char* kEnding = ".safetensors";
constexpr const char* kAnotherOutput = "output.dir=FOLDER after the job file chooses another one";

std::string weights_path(const job::OutputSpec& output) { return output.dir + "/model.safetensors"; }

bool is_taken(const std::string& path) {
  std::error_code problem;
  return std::filesystem::exists(std::filesystem::symlink_status(path, problem));
}

// "out/model.safetensors" -> "out/model.previous.safetensors"
std::string beside(const std::string& path, const std::string& word) {
  const std::size_t end = path.size() - std::string_view(kEnding).size();
  return fmt::format("{}.{}{}", path.substr(0, end), word, kEnding);
}

std::string free_weights_path(const std::string& path) {
  for (int number = 1;; ++number)
    if (std::string free = beside(path, std::to_string(number)); !is_taken(free)) return free;
}

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

bool has_content(const std::string& path, const std::string& content) {
  std::error_code problem;
  return std::filesystem::file_size(path, problem) == content.size() &&
         read_file(path, content.size()) == content;
}

constexpr const char* kScore = "score";  // in the metadata of best.safetensors

std::string previous_best_path(const job::OutputSpec& output) {
  return output.dir + "/best.previous.safetensors";
}

// None if the file does not exist, or has no score.
std::optional<ScoredEpoch> read_score(const std::string& path) {
  if (!is_taken(path)) return std::nullopt;
  const Safetensors file = read_safetensors(path);
  const auto score = file.metadata.find(kScore);
  return score == file.metadata.end() ? std::nullopt : read_scored_epoch(read_json(score->second).root);
}

bool is_of_training(const std::string& path, const std::string& training) {
  const std::optional<ScoredEpoch> score = read_score(path);
  return score && !training.empty() && score->training == training;
}

// Where the best weights go when a training begins. Its own do not replace those of another training, and its own are not replaced.
std::string path_aside(const job::OutputSpec& output, const std::string& training) {
  const std::string path = best_path(output);
  std::string previous = previous_best_path(output);
  const bool stays =
      is_taken(previous) && (is_of_training(previous, training) || is_of_training(path, training));
  return stays ? free_weights_path(path) : previous;
}

// best.previous.safetensors, best.1.safetensors, and so on, up to the first number that is free.
std::vector<std::string> bests_aside(const job::OutputSpec& output) {
  std::vector<std::string> paths = {previous_best_path(output)};
  for (int number = 1;; ++number) {
    std::string path = beside(best_path(output), std::to_string(number));
    if (!is_taken(path)) return paths;
    paths.push_back(std::move(path));
  }
}

bool has_score(const std::string& path, const ScoredEpoch& score) {
  return problem_with(path).empty() && read_score(path) == score;
}

void rename_best(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw Error(ErrorKind::create, fmt::format("renaming {} to {}: {}", from, to, describe_errno(errno)));
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
    path = free_weights_path(path);
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
  if (!problem_with(path).empty() || !has_content(path, format_tensors(weights, about)))
    return save_result(output, weights, about, out);
  out << "weights: " << printable(path) << std::endl;
}

std::string keep_earlier_weights(const std::string& path) {
  if (!is_taken(path)) return "";
  std::string kept = beside(path, "previous");
  if (!problem_with(kept).empty()) kept = free_weights_path(path);
  const std::string temporary = fmt::format("{}.{}.tmp", kept, ::getpid());
  copy_or_link(path, temporary);
  const int problem = ::rename(temporary.c_str(), kept.c_str()) == 0 ? 0 : errno;
  ::unlink(temporary.c_str());  // it stays if both names have one file
  if (problem != 0)
    throw Error(ErrorKind::create, fmt::format("creating {}: {}", kept, describe_errno(problem)));
  return kept;
}

std::string best_path(const job::OutputSpec& output) { return output.dir + "/best.safetensors"; }

void require_own_best(const job::OutputSpec& output) {
  require_own_weights(best_path(output), kAnotherOutput);
  require_own_weights(previous_best_path(output), kAnotherOutput);
}

std::optional<ScoredEpoch> read_best(const job::OutputSpec& output) { return read_score(best_path(output)); }

bool bring_best_back(const job::OutputSpec& output, const ScoredEpoch& score, std::ostream& out) {
  const std::string path = best_path(output);
  const std::vector<std::string> paths = bests_aside(output);
  const auto ours =
      std::ranges::find_if(paths, [&](const std::string& aside) { return has_score(aside, score); });
  if (ours == paths.end()) return false;
  if (is_taken(path)) {
    const std::string aside = free_weights_path(path);
    rename_best(path, aside);
    out << fmt::format("the best weights of another training are {} now", printable(aside)) << std::endl;
  }
  rename_best(*ours, path);
  out << fmt::format("the best weights of this training so far are {} again, which was {}", printable(path),
                     printable(*ours))
      << std::endl;
  return true;
}

void set_best_aside(const job::OutputSpec& output, const std::string& training, std::ostream& out) {
  const std::string path = best_path(output);
  if (!is_taken(path)) return;
  const bool is_ours = is_of_training(path, training);
  const std::string aside = path_aside(output, training);
  rename_best(path, aside);
  out << fmt::format("the best weights of {} are {} now",
                     is_ours ? "this training so far" : "an earlier training", printable(aside))
      << std::endl;
}

bool is_moved_by_set_best_aside(const std::string& path, const job::OutputSpec& output,
                                const std::string& training) {
  if (!is_taken(best_path(output))) return false;
  std::error_code problem;
  const auto file_of = [&](const std::string& of) { return std::filesystem::weakly_canonical(of, problem); };
  return file_of(path) == file_of(best_path(output)) ||
         file_of(path) == file_of(path_aside(output, training));
}

void save_best(const job::OutputSpec& output, const PlainTensors& weights, Metadata about,
               const ScoredEpoch& score, std::ostream& out) {
  make_directories(output.dir);
  require_own_best(output);
  about[kScore] = to_json(as_json(score));
  save_weights(best_path(output), weights, about);
  out << fmt::format("best weights: {} (epoch {}, {})", printable(best_path(output)), score.epoch,
                     describe(score))
      << std::endl;
}

}  // namespace fleetrun::runtime
