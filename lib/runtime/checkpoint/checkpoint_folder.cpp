#include "runtime/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/run/run_key.h"
#include "base/system/file.h"
#include "runtime/checkpoint/manifest.h"

namespace fleetrun::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPartial = ".partial-";
constexpr std::array<std::string_view, 8> kCheckpointFiles = {kModelFile,      kOptimizerFile, kMergedFile,
                                                              kRankStatesFile, kRanksFile,     kBestFile,
                                                              kHistoryFile,    kManifestName};
constexpr std::size_t kNumberDigits = 6;

// "000007-step-2737" is number 7; nothing for what is not a checkpoint of ours.
std::optional<long> number_of(const std::string& name) {
  const std::size_t dash = name.find("-step-");
  if (dash == std::string::npos || dash < kNumberDigits) return std::nullopt;
  const auto is_digit = [](unsigned char letter) { return std::isdigit(letter) != 0; };
  const std::string number = name.substr(0, dash), step = name.substr(dash + std::string("-step-").size());
  constexpr std::size_t kMostDigits = 18;  // of what a long holds in any case
  if (number.size() > kMostDigits || step.empty() || !std::all_of(number.begin(), number.end(), is_digit) ||
      !std::all_of(step.begin(), step.end(), is_digit))
    return std::nullopt;
  return std::stol(number);
}

// Oldest first.
std::map<long, std::string> checkpoints_in(const std::string& folder) {
  std::map<long, std::string> found;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end; entry.increment(problem))
    if (const auto number = number_of(entry->path().filename().string()))
      found[*number] = entry->path().string();
  if (problem) throw file_error(problem.value(), "listing", folder);
  return found;
}

long number_behind(const std::map<long, std::string>& checkpoints) {
  return checkpoints.empty() ? 1 : checkpoints.rbegin()->first + 1;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

// ".partial-7" of a save, ".partial-000007-step-2737" of a removal.
bool is_partial(const std::string& name) {
  if (!name.starts_with(kPartial)) return false;
  const std::string rest = name.substr(std::string_view(kPartial).size());
  return is_number(rest) || number_of(rest).has_value();
}

// A file that we write into the folder of a checkpoint, under its name or the one that it has at first.
bool is_ours(std::string_view name) {
  return std::any_of(kCheckpointFiles.begin(), kCheckpointFiles.end(), [name](std::string_view ours) {
    return name == ours || (name.starts_with(ours) && name[ours.size()] == '.' && name.ends_with(".tmp"));
  });
}

// What a folder holds, no link followed.
class Contents {
 public:
  explicit Contents(const std::string& path)
      : folder_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
    if (folder_) names_ = names_in(folder_.get());
  }

  bool all_ours() const { return folder_ && std::all_of(names_.begin(), names_.end(), is_ours); }
  void remove_ours() const {
    for (const std::string& name : names_)
      if (is_ours(name)) ::unlinkat(folder_.get(), name.c_str(), 0);
  }

 private:
  UniqueFd folder_;
  std::vector<std::string> names_;
};

// What is not ours stays, and the folder with it. What cannot be removed is in nobody's way, and a next run tries again.
void remove_own_folder(const std::string& path) {
  Contents(path).remove_ours();
  ::rmdir(path.c_str());
}

void remove_partial(const std::string& folder) {
  std::error_code problem;
  std::vector<std::string> partial;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end; entry.increment(problem))
    if (is_partial(entry->path().filename().string())) partial.push_back(entry->path().string());
  for (const std::string& path : partial) remove_own_folder(path);
}

UniqueFd open_lock(const std::string& path, bool& is_new) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  UniqueFd fd(::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0640));
  is_new = static_cast<bool>(fd);
  if (!fd) fd.reset(::open(path.c_str(), kFlags | O_CREAT, 0640));
  if (!fd) throw Error(ErrorKind::create, fmt::format("creating {}: {}", path, describe_errno(errno)));
  return fd;
}

void claim(const UniqueFd& lock, const std::string& folder, const std::function<bool()>& wait) {
  do {
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return;
    if (errno !=
        EWOULDBLOCK)  // a file system without locks: two runs in one folder are the user's care there
      return;
  } while (wait());
  throw Error(ErrorKind::create,
              fmt::format("another run that is under way keeps its checkpoints in {}", folder),
              "checkpoint.dir=FOLDER after the job file chooses another one");
}

// A disk without room for it leaves the folder without one.
std::uint64_t choose_identity(const UniqueFd& lock) {
  const Nonce chance = make_nonce();
  std::uint64_t identity = 0;
  std::memcpy(&identity, chance.data(), sizeof identity);
  const std::string text = fmt::format("{:016x}\n", identity);
  return ::pwrite(lock.get(), text.data(), text.size(), 0) == std::ssize(text) ? identity : 0;
}

std::uint64_t read_identity(const UniqueFd& lock) {
  std::array<char, 16> text{};
  std::uint64_t identity = 0;
  if (::pread(lock.get(), text.data(), text.size(), 0) != std::ssize(text)) return 0;
  const auto end = text.data() + text.size();
  return std::from_chars(text.data(), end, identity, 16).ptr == end ? identity : 0;
}

// Whether something else has this name. If nobody can tell, the disk has a problem, which the save tells.
bool is_another(const UniqueFd& open, const std::string& path) {
  struct stat ours {
  }, there{};
  if (::fstat(open.get(), &ours) != 0 || ::stat(path.c_str(), &there) != 0) return false;
  return ours.st_dev != there.st_dev || ours.st_ino != there.st_ino;
}

// Another folder of that name belongs to whoever made it, and perhaps another run has claimed it. Some file systems give a folder another
// number, such as one with layers, so the lock decides if it is there.
void require_same_folder(const std::string& folder, const UniqueFd& opened, const UniqueFd& lock) {
  const std::string lock_there = folder + "/.lock";
  const bool has_lock = ::access(lock_there.c_str(), F_OK) == 0;
  if (has_lock ? is_another(lock, lock_there) : is_another(opened, folder))
    throw Error(
        ErrorKind::create,
        fmt::format("{} was replaced during the training: it is not the folder that this run uses", folder));
}

// "" if it cannot be read: a training can do without it.
std::string read_history(const HistoryFile& history) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // a row has about 100
  if (history.path.empty()) return "";
  try {
    return read_file(history.path, kMostBytes).substr(0, history.bytes);
  } catch (const Error&) {
    return "";
  }
}

// A training can do without, so a disk that does not give the file costs no checkpoint.
void write_best(const UniqueFd& best, const std::string& path) {
  try {
    link_or_copy(best, path);
  } catch (const Error&) {
    return;
  }
}

void write_files(const std::string& folder, const Snapshot& snapshot) {
  if (::mkdir(folder.c_str(), 0750) != 0)
    throw Error(ErrorKind::io, fmt::format("creating folder {}: {}", folder, describe_errno(errno)));
  Manifest manifest = {.state = snapshot.state};
  for (const auto& [name, tensors] : snapshot.files) {
    const std::string content =
        format_tensors(tensors, name == kModelFile ? snapshot.about_model : Metadata{});
    manifest.files[name] = facts_of(content);
    write_file_atomically(folder + "/" + name, content);
  }
  if (const std::string history = read_history(snapshot.history); !history.empty())
    write_file_atomically(folder + "/" + kHistoryFile, history);
  if (snapshot.best) write_best(*snapshot.best, folder + "/" + kBestFile);
  write_file_atomically(folder + "/" + kManifestName, format_manifest(manifest));
  sync_folder(folder);
}

// Renames the folder before it removes it, so that an interrupted removal leaves no half of a checkpoint. False: it is a link, or
// contains a file that is not ours; then it stays.
bool remove_checkpoint(const std::string& path) {
  if (!Contents(path).all_ours()) return false;
  const fs::path hidden = fs::path(path).parent_path() / (kPartial + fs::path(path).filename().string());
  if (::rename(path.c_str(), hidden.c_str()) == 0) remove_own_folder(hidden);
  return true;
}

bool is_same_folder(const std::string& one, const std::string& other) {
  std::error_code missing;
  return fs::equivalent(one, other, missing);
}

// Removes the oldest beyond `count`, also from `checkpoints`. One that must stay counts, too. `needed` stay, however old they are; "": none.
void keep_newest(std::map<long, std::string>& checkpoints, int count,
                 const std::vector<std::string>& needed) {
  for (auto old = checkpoints.begin(); old != checkpoints.end() && std::ssize(checkpoints) > count;) {
    const bool stays = std::ranges::any_of(
        needed, [&](const std::string& path) { return is_same_folder(old->second, path); });
    const bool goes = !stays && remove_checkpoint(old->second);
    old = goes ? checkpoints.erase(old) : std::next(old);
  }
}

// For the next one, if an earlier run had a larger `keep`. Never removes the newest, nor the needed ones: until the next one is on the disk, a
// training goes on from there.
void make_room(std::map<long, std::string>& checkpoints, int keep, const std::vector<std::string>& needed) {
  if (checkpoints.empty()) return;
  auto newest = checkpoints.extract(std::prev(checkpoints.end()));
  keep_newest(checkpoints, keep - 1, needed);
  checkpoints.insert(std::move(newest));
}

// For whoever names the folder above a checkpoint. What else there is comes out when it is read.
void require_no_collection(const std::string& path) {
  std::error_code none;
  if (!fs::is_directory(path, none) || fs::exists(path + "/" + kManifestName, none)) return;
  const std::map<long, std::string> checkpoints = checkpoints_in(path);
  if (checkpoints.empty()) return;
  throw Error(ErrorKind::missing, fmt::format("{} is a folder of checkpoints, wanted one of them", path),
              "the newest is " + checkpoints.rbegin()->second);
}

}  // namespace

Checkpoint read_checkpoint(const std::string& path) {
  require_no_collection(path);
  constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  constexpr std::size_t kMostManifestBytes = std::size_t{1} << 20;
  const std::string manifest_path = path + "/" + kManifestName;
  const Manifest manifest = parse_manifest(read_file(manifest_path, kMostManifestBytes), manifest_path);
  Checkpoint checkpoint = {.path = path, .state = manifest.state};
  for (const auto& [name, wanted] : manifest.files) {
    const std::string file = path + "/" + name;
    std::string content = read_file(file, kNoLimit);
    const FileFacts found = facts_of(content);
    if (found.bytes != wanted.bytes)
      throw Error(ErrorKind::data,
                  fmt::format("{} has {} bytes, wanted {}", file, found.bytes, wanted.bytes));
    if (found != wanted)
      throw Error(ErrorKind::data, fmt::format("{} has checksum {}, wanted {}: its content was changed", file,
                                               found.checksum, wanted.checksum));
    checkpoint.files.emplace(name, parse_safetensors(std::move(content), file));
  }
  return checkpoint;
}

CheckpointFolder::CheckpointFolder(std::string path, int keep, const std::function<bool()>& wait)
    : path_(std::move(path)), keep_(keep) {
  make_directories(path_);
  folder_.reset(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  lock_ = open_lock(path_ + "/.lock", is_new_);
  claim(lock_, path_, wait);
  identity_ = is_new_ ? choose_identity(lock_) : read_identity(lock_);
  remove_partial(path_);
}

std::optional<std::int64_t> newest_step_in(const std::string& folder) {
  try {
    const std::map<long, std::string> found = checkpoints_in(folder);
    if (found.empty()) return std::nullopt;
    const std::string& newest = found.rbegin()->second;
    return std::stoll(newest.substr(newest.rfind('-') + 1));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::int64_t CheckpointFolder::next_number() const { return number_behind(checkpoints_in(path_)); }

std::vector<std::string> CheckpointFolder::list(std::int64_t least_number) const {
  std::vector<std::string> paths;
  for (const auto& [number, path] : checkpoints_in(path_))
    if (number >= least_number) paths.insert(paths.begin(), path);
  return paths;
}

std::string CheckpointFolder::write(const Snapshot& snapshot) {
  require_same_folder(path_, folder_, lock_);
  std::map<long, std::string> before = checkpoints_in(path_);
  const long number = number_behind(before);
  std::string path = fmt::format("{}/{:06}-step-{}", path_, number, snapshot.state.steps);
  const std::string partial = fmt::format("{}/{}{}", path_, kPartial, number);
  remove_own_folder(partial);
  std::vector<std::string> needed = named_;
  needed.push_back(needed_);
  make_room(before, keep_, needed);
  try {
    write_files(partial, snapshot);
    if (::rename(partial.c_str(), path.c_str()) != 0)
      throw Error(ErrorKind::io, fmt::format("renaming {} to {}: {}", partial, path, describe_errno(errno)));
  } catch (const Error&) {
    remove_own_folder(partial);
    throw;
  }
  sync_folder(path_);
  needed_.clear();
  keep_newest(before, keep_ - 1, named_);
  return path;
}

std::string CheckpointFolder::set_aside(const std::string& checkpoint) {
  std::string aside = checkpoint + ".bad";
  std::error_code unknown;
  for (int copy = 2; fs::exists(aside, unknown); ++copy) aside = fmt::format("{}.bad{}", checkpoint, copy);
  if (::rename(checkpoint.c_str(), aside.c_str()) != 0)
    throw Error(ErrorKind::create,
                fmt::format("renaming {} to {}: {}", checkpoint, aside, describe_errno(errno)));
  return aside;
}

}  // namespace fleetrun::runtime
