#include "runtime/training/save/best_weights.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ostream>
#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/system/file.h"
#include "base/text/printable.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/training/save/output_folder.h"

namespace fleetrun::runtime {
namespace {

constexpr const char* kBestStart = "best.";
constexpr const char* kBestEnding = ".safetensors";

std::optional<ScoredEpoch> score_in(const Metadata& metadata) {
  const auto score = metadata.find(kScoreKey);
  return score == metadata.end() ? std::nullopt : read_scored_epoch(read_json(score->second).root);
}

// O_NONBLOCK: nothing hangs at a FIFO.
UniqueFd open_to_read(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "best.previous.safetensors" and "best.12.safetensors", but no other file of the user.
bool is_name_aside(std::string_view name) {
  if (!name.starts_with(kBestStart) || !name.ends_with(kBestEnding)) return false;
  name.remove_prefix(std::string_view(kBestStart).size());
  if (name.size() <= std::string_view(kBestEnding).size()) return false;
  name.remove_suffix(std::string_view(kBestEnding).size());
  return name == "previous" || is_number(name);
}

bool is_regular(const std::string& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

// Of the files aside, one with the same content as best.safetensors; "": none has.
std::string copy_aside(const job::OutputSpec& output) {
  const std::string path = best_path(output);
  if (!is_regular(path)) return "";
  const UniqueFd best = open_to_read(path);
  const UniqueFd folder(::open(output.dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!best || !folder) return "";
  for (const std::string& name : names_in(folder.get())) {
    std::string aside = fmt::format("{}/{}", output.dir, name);
    if (!is_name_aside(name) || !is_regular(aside)) continue;
    if (const UniqueFd other = open_to_read(aside); other && have_same_content(best, other)) return aside;
  }
  return "";
}

void rename_best(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw Error(ErrorKind::create, fmt::format("renaming {} to {}: {}", from, to, describe_errno(errno)));
}

}  // namespace

std::string best_path(const job::OutputSpec& output) { return output.dir + "/best.safetensors"; }

void require_own_best(const job::OutputSpec& output) {
  require_own_weights(best_path(output), kAnotherOutput);
}

UniqueFd open_best(const std::string& path, const ScoredEpoch& score, std::ostream& out) {
  UniqueFd file = open_to_read(path);
  if (!file || score_in(read_metadata(file.get())) != score) return {};
  try {
    read_safetensors(path);
    return file;
  } catch (const Error& problem) {
    out << "warning: " << printable(problem.message()) << std::endl;
    return {};
  }
}

void set_best_aside(const job::OutputSpec& output, std::ostream& out) {
  const std::string path = best_path(output);
  if (!is_taken(path)) return;
  std::string aside = copy_aside(output);
  if (aside.empty()) {
    const std::string previous = beside(path, "previous");
    aside = is_taken(previous) ? free_path_beside(path) : previous;
    rename_best(path, aside);
  } else if (::unlink(path.c_str()) != 0) {
    throw Error(ErrorKind::create, fmt::format("removing {}: {}", path, describe_errno(errno)));
  }
  out << "earlier best weights: " << printable(aside) << std::endl;
}

void restore_best(const job::OutputSpec& output, const UniqueFd& best, std::ostream& out) {
  const std::string path = best_path(output);
  if (const UniqueFd there = open_to_read(path); there && have_same_content(there, best)) return;
  set_best_aside(output, out);
  link_or_copy(best, path);
  out << fmt::format("{} has the best weights of the checkpoint again", printable(path)) << std::endl;
}

UniqueFd save_best(const job::OutputSpec& output, const PlainTensors& weights, Metadata about,
                   const ScoredEpoch& score, std::ostream& out) {
  make_directories(output.dir);
  require_own_best(output);
  about[kScoreKey] = to_json(as_json(score));
  save_weights(best_path(output), weights, about);
  out << fmt::format("best weights: {} (epoch {}, {})", printable(best_path(output)), score.epoch,
                     describe(score))
      << std::endl;
  return open_to_read(best_path(output));
}

}  // namespace fleetrun::runtime
