#include "launch/process/run_cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "launch/process/cgroup_files.h"
#include "launch/process/descriptors.h"
#include "launch/process/pidfd.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kOurPrefix = "fleetrun-";
// What tells a group of ours from others that are named as ours are. Its value is the number of the launcher.
constexpr const char* kMark = "user.fleetrun.launcher";
constexpr int kMostNames = 100;  // of groups that were left by launchers of our number
constexpr auto kEmptyPatience = std::chrono::milliseconds(500);  // for killed processes to leave the group
constexpr auto kLookAgain = std::chrono::milliseconds(1);

void kill_by(const UniqueFd& kill) { [[maybe_unused]] const ssize_t written = ::write(kill.get(), "1", 1); }

// A group can be removed when the last of its processes is gone, and the groups that these made (a launcher that a
// worker starts makes one).
void remove_when_empty(const std::filesystem::path& path) {
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(path, gone))
    if (entry.is_directory(gone)) remove_when_empty(entry.path());
  const auto deadline = std::chrono::steady_clock::now() + kEmptyPatience;
  while (::rmdir(path.c_str()) != 0 && errno == EBUSY && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(kLookAgain);
}

// Ends the group when the process that holds the other end of the pipe dies.
[[noreturn]] void stand_guard(int pipe_end, int kill_fd, const std::string& path) {
  ::dup2(pipe_end, 0);
  ::dup2(kill_fd, 1);
  close_from(2);
  char nothing = 0;
  while (::read(0, &nothing, 1) < 0 && errno == EINTR) {
  }
  [[maybe_unused]] const ssize_t written = ::write(1, "1", 1);
  remove_when_empty(path);
  ::_exit(0);
}

// Linux has such attributes for cgroups since 5.7, before it has cgroup.kill.
bool is_marked(const UniqueFd& group) {
  struct stat facts {};
  return ::fgetxattr(group.get(), kMark, nullptr, 0) > 0 && ::fstat(group.get(), &facts) == 0 &&
         facts.st_uid == ::geteuid();
}

void mark(const UniqueFd& group) {
  const std::string value = std::to_string(::getpid());
  ::fsetxattr(group.get(), kMark, value.data(), value.size(), XATTR_CREATE);
}

// A new one, whose name is the launcher's number; "" where none can be made.
std::string make_group(const std::string& parent) {
  for (int attempt = 0; attempt < kMostNames; ++attempt) {
    std::string path = fmt::format("{}/{}{}{}", parent, kOurPrefix, ::getpid(),
                                   attempt == 0 ? "" : fmt::format("-{}", attempt));
    if (::mkdir(path.c_str(), 0755) == 0) return path;
    if (errno != EEXIST) break;
  }
  return "";
}

void end_abandoned(const std::string& parent) {
  DIR* folder = ::opendir(parent.c_str());
  if (folder == nullptr) return;
  while (const dirent* entry = ::readdir(folder)) {  // NOLINT(concurrency-mt-unsafe): ours alone
    if (!std::string_view(entry->d_name).starts_with(kOurPrefix)) continue;
    const std::string path = parent + "/" + entry->d_name;
    const UniqueFd group(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!group || !is_marked(group) || ::flock(group.get(), LOCK_EX | LOCK_NB) != 0)
      continue;  // its launcher lives
    const UniqueFd kill(::openat(group.get(), "cgroup.kill", O_WRONLY | O_CLOEXEC));
    if (kill) kill_by(kill);
    remove_when_empty(path);
  }
  ::closedir(folder);
}

}  // namespace

std::unique_ptr<RunCgroup> RunCgroup::make() {
  const std::string parent =
      cgroup2_folder(read_kernel_file("/proc/self/mountinfo"), read_kernel_file("/proc/self/cgroup"));
  if (parent.empty()) return nullptr;
  end_abandoned(parent);
  const std::string path = make_group(parent);
  if (path.empty()) return nullptr;
  std::unique_ptr<RunCgroup> made(new RunCgroup(path));
  return made->usable() ? std::move(made) : nullptr;
}

RunCgroup::RunCgroup(std::string path) : path_(std::move(path)) {
  folder_.reset(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_ || ::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0) return;
  mark(folder_);
  kill_.reset(::openat(folder_.get(), "cgroup.kill", O_WRONLY | O_CLOEXEC));
}

void RunCgroup::post_guard() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  const UniqueFd read_end(ends[0]);
  alive_.reset(ends[1]);
  guard_pid_ = ::fork();
  if (guard_pid_ == 0) stand_guard(read_end.get(), kill_.get(), path_);
  if (guard_pid_ > 0) guard_pidfd_ = open_pidfd(guard_pid_);
}

RunCgroup::~RunCgroup() {
  if (guard_pidfd_) send_signal(guard_pidfd_, SIGKILL);
  remove_when_empty(path_);
  if (guard_pidfd_) ::waitid(P_PIDFD, static_cast<id_t>(guard_pidfd_.get()), nullptr, WEXITED);
}

void RunCgroup::kill_all() const {
  if (guard_pidfd_) send_signal(guard_pidfd_, SIGKILL);
  kill_by(kill_);
}

}  // namespace fleetrun::launch
