#include "launch/logs/log_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/system/file.h"
#include "launch/logs/folder_lock.h"
#include "launch/logs/growing_file.h"
#include "launch/logs/log_names.h"

namespace fleetrun::launch {
namespace {

constexpr std::uintmax_t kMostReserve = 64 * 1024;         // bytes; a report has about 500 per rank
constexpr std::size_t kProbe = 4096;                       // bytes that a disk must still take
constexpr std::uintmax_t kShareOfReserve = 8;              // of what is free: the logs come first
constexpr std::size_t kMostTrainBytes = 16 * 1024 * 1024;  // of log/train.json
constexpr std::size_t kMostErrorBytes = 1024 * 1024;
constexpr std::size_t kMostErrorStart = 64;        // bytes that show who wrote the file
constexpr std::size_t kMostNodesBytes = 64 << 20;  // of .nodes; 65,536 ranks have about 1 MB

UniqueFd open_folder(const std::string& path) {
  try {
    make_directories(path);
  } catch (const Error& error) {
    throw Error(ErrorKind::create, error.message(), "--log_dir chooses another folder for the logs");
  }
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw cannot_create(path, errno);
  return fd;
}

// The others are about rights, or about what a file system can do: they do not keep an open log from growing.
bool is_of_file_system(int problem) {
  return problem == EROFS || problem == EIO || problem == EDQUOT || problem == ESTALE;
}

// The mark that rank 0 of the embedded runtime puts into its report.
bool is_report_of(const std::string& text, const std::string& run_id) {
  const JsonDocument document = read_json(text);
  const JsonValue* const id = document.root.find("run_id", JsonValue::Kind::text);
  return document.complete && id != nullptr && id->text == run_id;
}

// Of the files of a run, those that people read; the others serve the run itself.
bool is_worth_keeping(const std::string& name) {
  const std::string base = std::filesystem::path(name).filename();
  return !is_temporary(base) && (!base.starts_with('.') || base == kTimesName);
}

bool is_worker_log(const std::string& name) {
  const std::string base = std::filesystem::path(name).filename();
  return is_numbered(base, "workerlog.", "") || is_numbered(base, "workerlog.", ".err");
}

// `earlier`: of the last run. If it started no rank, it does not push logs of ranks out of previous/.
bool are_worth_moving(const std::vector<std::string>& earlier, const std::vector<std::string>& before_that) {
  const auto has_logs = [](const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(), is_worker_log);
  };
  return std::any_of(earlier.begin(), earlier.end(), is_worth_keeping) &&
         (has_logs(earlier) || !has_logs(before_that));
}

std::string previous_name(const std::string& name) { return fmt::format("{}/{}", kPreviousFolder, name); }

bool is_of_an_attempt(const std::string& base) {
  return is_of_a_rank(base) || base == kNodesName || base == kTrainReportName;
}

// What PyTorch's @record writes, at the path that we gave the rank, which may have been killed over it.
bool begins_like_error_file(const std::string& text) {
  constexpr std::string_view kStart = "{\"message\":";  // whatever blanks a writer of JSON puts between
  std::string start = text.substr(0, kMostErrorStart);
  std::erase_if(start, [](char letter) { return letter == ' ' || letter == '\n' || letter == '\t'; });
  return !start.empty() && (start.starts_with(kStart) || kStart.starts_with(start));
}

}  // namespace

bool is_in_use(const std::string& path) { return is_locked(path); }

LogFolder::LogFolder(std::string path, LogPlan plan)
    : plan_(std::move(plan)), path_(std::move(path)), folder_(open_folder(path_)) {
  FolderLock lock = lock_folder(folder_.get(), path_);
  if (lock.missing != 0)
    warning_ = fmt::format(
        "the file system of {}/ has no locks ({}): a second run in the folder would spoil the logs of this one",
        path_, describe_errno(lock.missing));
  files_ = std::make_unique<OwnFiles>(folder_.get(), path_);
  require_free_names();
  sign(lock, folder_.get(), path_, {plan_.pid, files_->owner()});
  lock_ = std::move(lock.fd);
  clear();
  foreign_train_report_ = files_->look(kTrainReportName).has_value();
  began_ = true;
}

LogFolder::~LogFolder() {
  if (!files_) return;
  try {
    release_reserve();
    files_->end(own_names());
  } catch (const Error&) {
    // What the list says of the run as one that runs is true, too.
  }
}

bool LogFolder::is_removed() const {
  struct stat facts {};
  if (::fstat(folder_.get(), &facts) == 0 && facts.st_nlink == 0) return true;
  // A folder in a lower layer of an overlay keeps its links.
  std::error_code problem;
  return std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", folder_.get()), problem)
      .string()
      .ends_with(" (deleted)");
}

void LogFolder::make_again() {
  const auto make = [this] {
    try {
      return std::make_unique<LogFolder>(path_, plan_);
    } catch (const Error&) {
      return std::make_unique<LogFolder>(fmt::format("{}.{}", path_, plan_.pid), plan_);
    }
  };
  const std::unique_ptr<LogFolder> made = make();
  swap(*made);
}

void LogFolder::swap(LogFolder& other) {
  std::swap(path_, other.path_);
  std::swap(folder_, other.folder_);
  std::swap(lock_, other.lock_);
  std::swap(warning_, other.warning_);
  std::swap(previous_, other.previous_);
  std::swap(files_, other.files_);
  std::swap(began_, other.began_);
  std::swap(foreign_train_report_, other.foreign_train_report_);
}

std::string LogFolder::absolute() const {
  std::error_code problem;
  std::string path = std::filesystem::absolute(path_, problem).lexically_normal();
  if (problem) path.clear();  // somebody has removed the current folder
  return path_now(folder_, path).value_or(path);
}

void remove_log_folder(const std::string& path) {
  { const LogFolder remains(path); }  // removes them
  for (const char* last : {".fleetrun", ".lock"}) ::unlink((path + "/" + last).c_str());
  ::rmdir(path.c_str());
}

void write_lost_report(const std::string& path,
                       const std::function<NamedTexts(const std::string& run_id)>& texts) {
  const UniqueFd folder = open_folder(path);
  const FolderLock lock = lock_folder(folder.get(), path);
  OwnFiles files(folder.get(), path);
  if (files.list().ended) return;
  files.go_on();
  for (const auto& [name, text] : texts(files.list().run_id)) files.replace(name, text);
}

bool LogFolder::owns(const std::string& name) const { return files_->owns(name) || was_cut_off(name); }

// What workers write themselves, and what was made just before its run was cut off, is not in the list of that run.
bool LogFolder::was_cut_off(const std::string& name) const {
  const FileList& list = files_->list();
  const auto facts = files_->look(name);
  const bool may_be_ours = facts && (facts->kind == FileFacts::Kind::file ||
                                     (facts->kind == FileFacts::Kind::socket && name == kControlName));
  if (list.ended || !may_be_ours || facts->owner != files_->owner()) return false;
  const std::string base = std::filesystem::path(name).filename();
  if (base == kTrainReportName) return is_report_of(files_->read(name, kMostTrainBytes), list.run_id);
  if (is_of_a_rank(base) && number_in(base) >= list.ranks) return false;
  // Nobody's file had this name when the run began, so that it came while the run lasts, or after it was cut off.
  if (is_error_file(base))
    return began_ || facts->size == 0 || begins_like_error_file(files_->read(name, kMostErrorBytes));
  return !began_ && facts->size == 0;
}

// A folder comes after what is in it.
std::vector<std::string> LogFolder::own_names() const {
  std::vector<std::string> own;
  add_own_names(".", own);
  return own;
}

// `folder`: "." or "previous", which looks like the log folder of an earlier run.
void LogFolder::add_own_names(const std::string& folder, std::vector<std::string>& own) const {
  const auto add = [&](const std::string& name) {
    if (owns(name)) own.push_back(name);
  };
  for (const std::string& base : files_->names(folder)) {
    const std::string name = folder == "." ? base : fmt::format("{}/{}", folder, base);
    if (is_of_a_run(base)) add(name);
    if (name == kPreviousFolder) add_own_names(kPreviousFolder, own);
    if (is_attempt(base))
      for (const std::string& inner : files_->names(name))
        if (is_of_an_attempt(std::string(final_name(inner)))) add(fmt::format("{}/{}", name, inner));
    if ((is_attempt(base) || name == kPreviousFolder) && files_->owns(name)) own.push_back(name);
  }
}

// Begins the list of this run.
void LogFolder::clear() {
  std::vector<std::string> earlier, before_that;
  for (const std::string& name : own_names())
    (name.starts_with(kPreviousFolder) ? before_that : earlier).push_back(name);
  const bool moves = plan_.keeps_previous && are_worth_moving(earlier, before_that);
  if (moves) require_free_previous(earlier);
  if (moves || !plan_.keeps_previous)
    for (const std::string& name : before_that) files_->remove(name);
  const bool keeps_places = plan_.keeps_places && std::erase(earlier, kNodesName) > 0;
  std::erase_if(earlier, [&](const std::string& name) {
    if (moves && is_worth_keeping(name)) return false;
    files_->remove(name);
    return true;
  });
  std::vector<std::string> left = earlier;
  if (!moves && plan_.keeps_previous) left.insert(left.end(), before_that.begin(), before_that.end());
  files_->begin(plan_.run_id, plan_.ranks, left);  // somebody may kill us before they are moved
  if (keeps_places) files_->adopt(kNodesName);
  if (moves) keep_as_previous(earlier);
}

void LogFolder::keep_as_previous(const std::vector<std::string>& names) {
  previous_ = file(kPreviousFolder);
  files_->make_folder(kPreviousFolder);
  if (!files_->owns(kPreviousFolder)) files_->adopt(kPreviousFolder);
  for (const std::string& name : names) {
    const std::string kept = previous_name(name);
    if (is_attempt(name)) {
      files_->remove(name);
      continue;
    }
    if (const auto slash = name.find('/'); slash != std::string::npos)
      files_->make_folder(fmt::format("{}/{}", kPreviousFolder, name.substr(0, slash)));
    files_->move(name, kept);
    files_->adopt(kept);
  }
}

// As a run leaves it that is killed between making it and listing it.
bool LogFolder::is_empty_folder(const std::string& name) const {
  const auto found = files_->look(name);
  return found && found->kind == FileFacts::Kind::folder && found->owner == files_->owner() &&
         files_->names(name).empty();
}

// Before anything is moved.
void LogFolder::require_free_previous(const std::vector<std::string>& names) const {
  if (!is_empty_folder(kPreviousFolder)) require_free(kPreviousFolder);
  for (const std::string& name : names) require_free(previous_name(name));
}

void LogFolder::require_free(const std::string& name) const {
  if (owns(name)) return;
  if (const auto found = files_->look(name)) throw in_the_way(file(name), *found, files_->is_known(name));
}

void LogFolder::require_free_names() const {
  for (const std::string& name : files_->names()) {
    const bool of_a_job = name == kTrainReportName || name == kHistoryName;
    const bool of_a_run = is_temporary(name)   ? false
                          : of_a_job           ? plan_.has_train_report
                          : is_of_a_rank(name) ? number_in(name) < plan_.ranks
                                               : is_of_a_run(name);
    if (of_a_run) require_free(name);
    if (is_attempt(name) && plan_.may_start_again) require_free_attempt(name);
  }
}

void LogFolder::require_free_attempt(const std::string& folder) const {
  const auto found = files_->look(folder);
  if (found && found->kind != FileFacts::Kind::folder) return require_free(folder);
  for (const std::string& base : files_->names(folder))
    if (base == kNodesName || (base == kTrainReportName && plan_.has_train_report) ||
        (is_of_a_rank(base) && number_in(base) < plan_.ranks))
      require_free(fmt::format("{}/{}", folder, base));
}

void LogFolder::keep_attempt(int attempt) const {
  const std::string folder = fmt::format("attempt-{}", attempt);
  files_->make_folder(folder);
  if (files_->owns(kNodesName))
    files_->replace(fmt::format("{}/{}", folder, kNodesName), files_->read(kNodesName, kMostNodesBytes));
  for (const std::string& name : files_->names())
    if (is_of_a_rank(name) && owns(name)) files_->move(name, fmt::format("{}/{}", folder, name));
}

void LogFolder::keep_train_report(int attempt) const {
  if (owns(kTrainReportName))
    files_->move(kTrainReportName, fmt::format("attempt-{}/{}", attempt, kTrainReportName));
}

std::string LogFolder::read_error_file(int rank) const {
  const std::string name = fmt::format("error.{}.json", rank);
  return owns(name) ? files_->read(name, kMostErrorBytes) : "";
}

UniqueFd LogFolder::open_worker_log(int rank) const {
  return files_->create(fmt::format("workerlog.{}", rank), O_APPEND);
}

UniqueFd LogFolder::open_error_log(int rank) const {
  return files_->create(fmt::format("workerlog.{}.err", rank), O_APPEND);
}

UniqueFd LogFolder::open_times() const {
  remove(kTimesName);
  return files_->create(kTimesName, O_APPEND);
}

// Rank 0 writes the rows: those of the checkpoint first, if it goes on from one.
void LogFolder::prepare_history() const {
  if (!files_->owns(kHistoryName)) files_->create(kHistoryName);
}

UniqueFd LogFolder::open_stacks(int rank) const {
  const std::string name = fmt::format("stacks.{}", rank);
  remove(name);
  return files_->create(name);
}

void LogFolder::write(const std::string& name, std::string_view content) const {
  files_->replace(name, content);
}

void LogFolder::write_private(const std::string& name, std::string_view content) const {
  remove(name);
  const UniqueFd fd = files_->create(name, 0, 0600);
  write_all(fd.get(), content, file(name));
}

void LogFolder::adopt(const std::string& name) const { files_->adopt(name); }

void LogFolder::remove(const std::string& name) const {
  if (files_->owns(name)) files_->remove(name);
}

// Appends a page to the reserve, and removes that page again. If there is no reserve yet, it writes a file without a name instead; then a disk
// without free inodes is not reported, because open logs can still grow there. statvfs(2) is not enough: it does not know quotas, and ext4
// may refuse all writes after an error although it does not call itself read-only.
int LogFolder::problem_of_writing() const {
  constexpr int kFlags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd probe(files_->owns(kReserveName) ? ::openat(folder_.get(), kReserveName, kFlags)
                                            : ::openat(folder_.get(), ".", kFlags | O_TMPFILE, 0600));
  if (!probe) return is_of_file_system(errno) ? errno : 0;
  const std::string page(kProbe, '\n');
  const off_t end = ::lseek(probe.get(), 0, SEEK_END);
  int problem = ::pwrite(probe.get(), page.data(), page.size(), end) == std::ssize(page) ? 0 : errno;
  for (const bool works :
       {::ftruncate(probe.get(), end) == 0, ::close(probe.release()) == 0})  // where NFS tells it
    if (!works && problem == 0) problem = errno;
  return problem == ENOSPC || is_of_file_system(problem) ? problem : 0;
}

// Where it cannot be had, the report takes its chance.
void LogFolder::reserve() const {
  std::error_code problem;
  const auto space = std::filesystem::space(path_, problem);
  if (problem) return;
  const auto size = static_cast<off_t>(std::min(kMostReserve, space.available / kShareOfReserve));
  const bool is_ours = files_->owns(kReserveName);
  if (const auto found = files_->look(kReserveName); found && found->size >= size) return;
  try {
    const UniqueFd fd =
        is_ours ? UniqueFd(::openat(folder_.get(), kReserveName, O_WRONLY | O_NOFOLLOW | O_CLOEXEC))
                : files_->create(kReserveName);
    if (fd) ::posix_fallocate(fd.get(), 0, size);
  } catch (const Error&) {
    // No room for its name, even.
  }
}

void LogFolder::try_to_remove(const std::string& name) const {
  try {
    remove(name);
  } catch (
      const Error&) {  // NOLINT(bugprone-empty-catch): the folder may be read-only by now, and the run has something else to say
  }
}

void LogFolder::release_reserve() const { try_to_remove(kReserveName); }

void LogFolder::write_endpoints(const std::vector<Endpoint>& endpoints) const {
  std::string text = "PADDLE_TRAINER_ENDPOINTS: ";
  for (const Endpoint& endpoint : endpoints) text += "\n" + endpoint.describe();
  write(kEndpointsName, text);
}

std::string LogFolder::read_history(std::size_t most) const {
  if (!owns(kHistoryName)) return "";
  GrowingFile file(find(kHistoryName));
  const auto size = static_cast<std::size_t>(file.size());
  if (!file.is_open() || size <= most) return file.read(std::min(size, most));
  constexpr std::size_t kMostHeader = 4096;
  std::string text = file.read(kMostHeader);
  text.resize(text.find('\n') + 1);
  file.go_to(static_cast<off_t>(size - most));
  const std::string last = file.read(most);
  return text + last.substr(last.find('\n') + 1);
}

std::vector<std::string> LogFolder::shown_names() const {
  std::vector<std::string> names;
  for (const std::string& name : files_->names())
    if (is_shown(name) && name != kPageName && owns(name)) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string LogFolder::read_train_report() const {
  return foreign_train_report_ ? "" : files_->read(kTrainReportName, kMostTrainBytes);
}

}  // namespace fleetrun::launch
