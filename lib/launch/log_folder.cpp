#include "launch/log_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"

namespace fleetrun::launch {
namespace {

constexpr const char* kLockName = ".lock";
constexpr const char* kReserveName = ".reserve";
constexpr off_t kReserveBytes = 64 * 1024;  // a report has about 500 per rank

Error cannot_create(const std::string& path, int code) {
  return Error(ErrorKind::create, fmt::format("creating {}: {}", path, describe_errno(code)),
               "--log_dir chooses another folder for the logs");
}

std::string read_start(int fd) {
  char text[64] = "";
  const ssize_t count = ::pread(fd, text, sizeof text, 0);
  return count > 0 ? std::string(text, static_cast<std::size_t>(count)) : "a process of unknown number";
}

// The name is `start`, digits, `end`.
bool is_numbered(std::string_view name, std::string_view start, std::string_view end) {
  if (name.size() <= start.size() + end.size() || !name.starts_with(start) || !name.ends_with(end))
    return false;
  const std::string_view number = name.substr(start.size(), name.size() - start.size() - end.size());
  return std::all_of(number.begin(), number.end(),
                     [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

bool is_of_a_rank(std::string_view name) {
  return is_numbered(name, "workerlog.", "") || is_numbered(name, "workerlog.", ".err") ||
         is_numbered(name, "error.", ".json") || is_numbered(name, "backup_env.", ".json") ||
         is_numbered(name, "stacks.", "") || is_numbered(name, "collectives.", ".json");
}

bool is_remains(std::string_view name) {
  return name == kReserveName || name == "report.json" || name == "train.json" || name == "endpoints.log" ||
         is_of_a_rank(name);
}

UniqueFd open_log(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0640));
  if (!fd) throw cannot_create(path, errno);
  return fd;
}

template <typename Condition>
std::vector<std::filesystem::path> entries(const std::string& folder, Condition condition) {
  std::vector<std::filesystem::path> found;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem))
    if (condition(entry.path().filename().string())) found.push_back(entry.path());
  return found;
}

void remove_files(const std::vector<std::filesystem::path>& files) {
  for (const std::string path : files)
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw cannot_create(path, errno);
}

}  // namespace

bool is_in_use(const std::string& path) {
  const UniqueFd lock(::open((path + "/" + kLockName).c_str(), O_RDONLY | O_CLOEXEC));
  return lock && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

LogFolder::LogFolder(std::string path) : path_(std::move(path)) {
  try {
    make_directories(path_);
  } catch (const Error& error) {
    throw Error(ErrorKind::create, error.message(), "--log_dir chooses another folder for the logs");
  }
  lock();
  remove_remains();
}

LogFolder::~LogFolder() { release_reserve(); }

std::string LogFolder::absolute() const { return std::filesystem::absolute(path_).lexically_normal(); }

// A lock of the kernel's: it goes with the process, however that ends.
void LogFolder::lock() {
  const std::string path = file(kLockName);
  lock_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (!lock_) throw cannot_create(path, errno);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    throw Error(ErrorKind::create, fmt::format("{}/ is in use by {}", path_, read_start(lock_.get())),
                "--log_dir chooses another folder for this run");
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char since[16] = "";
  std::strftime(since, sizeof since, "%H:%M:%S", &local);
  const std::string text = fmt::format("fleetrun, pid {}, since {}", ::getpid(), since);
  // In this order: ext4 writes a file that was empty for a moment to the disk when it is closed.
  if (::pwrite(lock_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::ftruncate(lock_.get(), static_cast<off_t>(text.size())) != 0)
    throw cannot_create(path, errno);
}

// Where it cannot be had, the report takes its chance.
void LogFolder::reserve() const {
  const UniqueFd fd(::open(file(kReserveName).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0640));
  if (fd) ::fallocate(fd.get(), 0, 0, kReserveBytes);
}

void LogFolder::release_reserve() const { ::unlink(file(kReserveName).c_str()); }

void LogFolder::remove_remains() const {
  remove_files(entries(path_, is_remains));
  for (const auto& attempt :
       entries(path_, [](std::string_view name) { return is_numbered(name, "attempt-", ""); })) {
    remove_files(entries(attempt, is_of_a_rank));
    std::error_code not_empty;  // with what somebody else put there
    std::filesystem::remove(attempt, not_empty);
  }
}

void LogFolder::keep_attempt(int attempt) const {
  const std::string folder = file(fmt::format("attempt-{}", attempt));
  make_directories(folder);
  for (const auto& path : entries(path_, is_of_a_rank)) {
    std::error_code problem;
    std::filesystem::rename(path, folder / path.filename(), problem);
    if (problem) throw cannot_create(folder, problem.value());
  }
}

std::string LogFolder::log_of_end(int rank) const {
  std::error_code none;
  const auto bytes = std::filesystem::file_size(error_log(rank), none);
  return none || bytes == 0 ? worker_log(rank) : error_log(rank);
}

UniqueFd LogFolder::open_worker_log(int rank) const { return open_log(worker_log(rank)); }

UniqueFd LogFolder::open_error_log(int rank) const { return open_log(error_log(rank)); }

void LogFolder::write_endpoints(const std::vector<Endpoint>& endpoints) const {
  std::string text = "PADDLE_TRAINER_ENDPOINTS: ";
  for (const Endpoint& endpoint : endpoints) text += "\n" + endpoint.describe();
  const std::string path = file("endpoints.log");
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
  if (!fd) throw cannot_create(path, errno);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw Error(ErrorKind::io, fmt::format("writing {}: {}", path, describe_errno(errno)));
}

}  // namespace fleetrun::launch
