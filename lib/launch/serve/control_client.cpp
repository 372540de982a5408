#include "launch/serve/control_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/logs/control_address.h"
#include "launch/logs/folder_lock.h"
#include "launch/logs/log_folder.h"
#include "launch/logs/log_names.h"
#include "launch/logs/own_files.h"

namespace fleetrun::launch {
namespace {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock::time_point;

constexpr auto kAnswerTime = 10s;                 // of a run that is busy starting 1,000 ranks
constexpr auto kEndTime = 1s;                     // of a run that has written its report
constexpr auto kRetryPause = 20ms;                // while a run begins or ends
constexpr std::size_t kLongestAnswer = 64 << 20;  // bytes; 65,536 ranks have about 16 MB

Error no_run(const std::string& folder) {
  return Error(ErrorKind::missing, fmt::format("no fleetrun uses {}/ now", folder),
               "--log_dir names the folder of the run");
}

Error no_answer(const std::string& folder, const std::string& why) {
  return Error(ErrorKind::io, fmt::format("the run in {}/ does not answer: {}", folder, why));
}

std::string owner_of(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? name_of_user(facts.st_uid) : "another user";
}

Error foreign_run(const std::string& folder) {
  return Error(ErrorKind::permission,
               fmt::format("the run in {}/ belongs to {}, and only that user and root may ask it", folder,
                           owner_of(folder + "/" + kControlName)));
}

// From now on sending and reading fail with EAGAIN when nothing moves for this long.
void limit_waits(const UniqueFd& socket) {
  const timeval limit{.tv_sec = kAnswerTime.count(), .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

bool send_line(const UniqueFd& socket, const std::string& line) {
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::send(socket.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0) return false;
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

// Up to its end; "" when the run was over before it answered.
std::string read_line(const UniqueFd& socket, const std::string& folder) {
  std::string text;
  std::array<char, 65536> buffer;
  while (!text.ends_with('\n')) {
    const ssize_t count = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != ECONNRESET)
      throw no_answer(folder, fmt::format("it sent nothing for {} s", kAnswerTime.count()));
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > kLongestAnswer)
      throw no_answer(folder, fmt::format("its answer has more than {} bytes", kLongestAnswer));
  }
  if (!text.empty() && !text.ends_with('\n')) throw no_answer(folder, "its answer breaks off");
  return text.substr(0, text.empty() ? 0 : text.size() - 1);
}

}  // namespace

UniqueFd ControlClient::connect(Time deadline) const {
  const ControlAddress found = control_address(folder_);
  if (!found.folder) throw file_error(errno, "looking for a run in", folder_);
  const Time end_by = std::chrono::steady_clock::now() + kEndTime;
  while (true) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) throw Error(ErrorKind::os, fmt::format("making a socket: {}", describe_errno(errno)));
    limit_waits(fd);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&found.address), sizeof found.address) == 0)
      return fd;
    if (errno == EACCES) throw foreign_run(folder_);
    if (errno != ENOENT && errno != ECONNREFUSED) throw no_answer(folder_, describe_errno(errno));
    if (!is_in_use(folder_)) throw no_run(folder_);
    if (const std::string host = other_host_of_holder(folder_); !host.empty())
      throw Error(
          ErrorKind::missing, fmt::format("the run in {}/ was started on {}", folder_, host),
          fmt::format(
              "a node that shares this folder has its logs beside it: --log_dir={}.node1, or --log_dir={}.HOST",
              folder_, folder_));
    const Time now = std::chrono::steady_clock::now();
    if (now >= end_by && ::access(fmt::format("{}/{}", folder_, kReportName).c_str(), F_OK) == 0)
      throw Error(ErrorKind::io,
                  fmt::format("the run in {}/ has ended, and waits until somebody reads its output", folder_),
                  fmt::format("kill {} ends the wait; {}/{} says how the run ended", pid_of_holder(folder_),
                              folder_, kReportName));
    if (now >= deadline)
      throw no_answer(folder_, "it has no socket there; not every file system supports sockets");
    std::this_thread::sleep_for(kRetryPause);
  }
}

std::string ControlClient::ask(const std::string& request) {
  const Time deadline = std::chrono::steady_clock::now() + kAnswerTime;
  while (true) {
    socket_ = connect(deadline);
    if (send_line(socket_, request + "\n")) {
      std::string answer = read_line(socket_, folder_);
      if (!answer.empty()) return answer;
    }
    if (!is_in_use(folder_)) throw no_run(folder_);
    if (std::chrono::steady_clock::now() >= deadline) throw no_answer(folder_, "it closes the connection");
    std::this_thread::sleep_for(kRetryPause);
  }
}

bool ControlClient::is_over_within(std::chrono::milliseconds time) {
  pollfd one{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, static_cast<int>(time.count())) > 0;
}

}  // namespace fleetrun::launch
