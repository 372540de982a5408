#include "runtime/training/save/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
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

std::optional<ScoredEpoch> score_in(const Metadata& metadata) {
  const auto score = metadata.find(kScore);
  return score == metadata.end() ? std::nullopt : read_scored_epoch(read_json(score->second).root);
}

// Reads the header alone. None if the file does not exist, cannot be read, or has no score.
std::optional<ScoredEpoch> read_score(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return fd ? score_in(read_metadata(fd.get())) : std::nullopt;
}

bool is_of_training(const std::string& path, const std::string& training) {
  const std::optional<ScoredEpoch> score = read_score(path);
  return score && !training.empty() && score->training == training;
}

// A name that no file has, so that nobody loses weights.
std::string free_path_aside(const job::OutputSpec& output) {
  std::string previous = previous_best_path(output);
  return is_taken(previous) ? free_weights_path(best_path(output)) : previous;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "best.previous.safetensors" and "best.12.safetensors", but no other file of the user.
bool is_name_aside(std::string_view name) {
  constexpr std::string_view kStart = "best.";
  if (!name.starts_with(kStart) || !name.ends_with(kEnding)) return false;
  name.remove_prefix(kStart.size());
  if (name.size() <= std::string_view(kEnding).size()) return false;
  name.remove_suffix(std::string_view(kEnding).size());
  return name == "previous" || is_number(name);
}

// Files of the user that have such a name are not among them.
std::map<std::string, ScoredEpoch> scores_aside(const job::OutputSpec& output) {
  std::map<std::string, ScoredEpoch> scores;
  std::error_code problem;  // no folder: nothing is aside
  for (const auto& entry : std::filesystem::directory_iterator(output.dir, problem)) {
    if (!is_name_aside(entry.path().filename().string())) continue;
    const std::string path = fmt::format("{}/{}", output.dir, entry.path().filename().string());
    if (!problem_with(path).empty()) continue;
    if (const std::optional<ScoredEpoch> score = read_score(path)) scores.emplace(path, *score);
  }
  return scores;
}

bool is_whole(const std::string& path, std::ostream& out) {
  try {
    read_safetensors(path);
    return true;
  } catch (const Error& problem) {
    out << "warning: " << printable(problem.message()) << "; it is left where it is" << std::endl;
    return false;
  }
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
  const bool is_set_aside = read_score(kept).has_value();  // by a training, which may want it back
  if (is_set_aside || !problem_with(kept).empty()) kept = free_weights_path(path);
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
}

std::optional<ScoredEpoch> read_best(const job::OutputSpec& output) {
  const std::string path = best_path(output);
  return is_taken(path) ? score_in(read_safetensors(path).metadata) : std::nullopt;
}

void set_best_aside(const job::OutputSpec& output, const std::string& training, std::ostream& out) {
  const std::string path = best_path(output);
  if (!is_taken(path)) return;
  const bool is_ours = is_of_training(path, training);
  const std::string aside = free_path_aside(output);
  rename_best(path, aside);
  out << fmt::format("the best weights of {} are {} now",
                     is_ours ? "this training so far" : "an earlier training", printable(aside))
      << std::endl;
}

std::optional<ScoredEpoch> bring_best_back(const job::OutputSpec& output,
                                           const std::function<bool(const ScoredEpoch&)>& ours,
                                           std::ostream& out) {
  std::string from;
  std::optional<ScoredEpoch> best;
  for (const auto& [path, score] : scores_aside(output))
    if (ours(score) && is_better(score, best) && is_whole(path, out)) from = path, best = score;
  if (!best) return std::nullopt;
  const std::string path = best_path(output);
  set_best_aside(output, best->training, out);
  rename_best(from, path);
  out << fmt::format("the best weights of this training so far are {} again, which was {}", printable(path),
                     printable(from))
      << std::endl;
  return best;
}

void keep_copy_of_best(const job::OutputSpec& output, std::ostream& out) {
  const std::optional<ScoredEpoch> score = read_best(output);
  const std::map<std::string, ScoredEpoch> aside = scores_aside(output);
  if (!score || std::ranges::any_of(aside, [&](const auto& one) { return one.second == *score; })) return;
  const std::string copy = free_path_aside(output);
  copy_or_link(best_path(output), copy);
  out << fmt::format("the best weights of the training from which this one goes on are also {} now",
                     printable(copy))
      << std::endl;
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
