#include "support/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace fleetrun {
namespace {

using std::chrono::milliseconds;

struct Pipe {
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  }
  int ends[2] = {-1, -1};
};

[[noreturn]] void become(const std::vector<std::string>& command, const ChildOptions& options, int out,
                         int err) {
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::close(nothing);
  if (options.ignore_hangup) ::signal(SIGHUP, SIG_IGN);
  if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) ::_exit(120);
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::_exit(121);
}

// False at its end.
bool read_some(int fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

void close_if_open(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const ChildOptions& options)
    : started_(std::chrono::steady_clock::now()) {
  Pipe out, err;
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) become(command, options, out.ends[1], err.ends[1]);
  ::close(out.ends[1]);
  ::close(err.ends[1]);
  out_ = out.ends[0];
  err_ = err.ends[0];
  if (options.close_stdout) close_if_open(out_);
}

ChildProcess::~ChildProcess() {
  close_if_open(out_);
  close_if_open(err_);
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ChildProcess::send(int signal) const { ::kill(pid_, signal); }

ChildResult ChildProcess::wait(milliseconds limit) {
  ChildResult result;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (out_ >= 0 || err_ >= 0) {
    std::array<pollfd, 2> events = {pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || ::poll(events.data(), events.size(), static_cast<int>(left.count())) == 0)
      throw std::runtime_error("still running after its deadline; stderr so far:\n" + result.err);
    if (events[0].revents != 0 && !read_some(out_, result.out)) close_if_open(out_);
    if (events[1].revents != 0 && !read_some(err_, result.err)) close_if_open(err_);
  }
  int status = 0;
  if (!comes_true([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; },
                  std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now())))
    throw std::runtime_error("closed its output and still runs");
  pid_ = -1;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  return result;
}

ChildResult run_child(const std::vector<std::string>& command, const ChildOptions& options) {
  return ChildProcess(command, options).wait();
}

bool comes_true(const std::function<bool()>& condition, milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(milliseconds(2));  // polls: a condition has no event to wait for
  }
  return true;
}

pid_t pid_in(const TemporaryFolder& folder, const std::string& name, milliseconds limit) {
  pid_t pid = 0;
  if (!comes_true([&] { return (pid = std::atoi(folder.read(name).c_str())) > 0; }, limit))
    throw std::runtime_error("no pid has come into " + folder / name);
  return pid;
}

bool is_alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text, '\0')) return false;
  const auto name_end = text.rfind(')');
  return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] != 'Z';
}

}  // namespace fleetrun
