// A program at a terminal of its own: keys reach it as they do a person's.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/child_process.h"

namespace fleetrun {

class TerminalChild {
 public:
  TerminalChild(const std::vector<std::string>& command, const std::string& folder) {
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ < 0) throw std::runtime_error("no pseudo terminal here");
    if (pid_ == 0) become(command, folder);
  }
  ~TerminalChild() {
    ::close(terminal_);
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  TerminalChild(const TerminalChild&) = delete;
  TerminalChild& operator=(const TerminalChild&) = delete;

  pid_t pid() const { return pid_; }
  void press(char key) const { [[maybe_unused]] const ssize_t written = ::write(terminal_, &key, 1); }

  // What is on the screen so far.
  const std::string& screen() {
    pollfd one{.fd = terminal_, .events = POLLIN, .revents = 0};
    char text[4096];
    while (::poll(&one, 1, 0) > 0) {
      const ssize_t count = ::read(terminal_, text, sizeof text);
      if (count <= 0) break;
      screen_.append(text, static_cast<std::size_t>(count));
    }
    return screen_;
  }
  bool shows(const std::string& text, std::chrono::milliseconds limit) {
    return comes_true([&] { return screen().find(text) != std::string::npos; }, limit);
  }

  // Its code, or 128 and the signal.
  int wait(std::chrono::milliseconds limit) {
    int status = 0;
    const bool ended = comes_true(
        [&] {
          screen();
          return ::waitpid(pid_, &status, WNOHANG) == pid_;
        },
        limit);
    if (!ended) throw std::runtime_error("still running after its deadline; on the screen:\n" + screen_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  [[noreturn]] static void become(const std::vector<std::string>& command, const std::string& folder) {
    if (::chdir(folder.c_str()) != 0) ::_exit(120);
    std::vector<char*> argv;
    argv.reserve(command.size() + 1);
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(121);
  }

  pid_t pid_ = -1;
  int terminal_ = -1;
  std::string screen_;
};

}  // namespace fleetrun
