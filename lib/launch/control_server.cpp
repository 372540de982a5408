#include "launch/control_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "launch/log_names.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestRequest = 4096;           // bytes; ours have about 100
constexpr std::size_t kMostPeers = 16;                  // at a time
constexpr auto kAnswerTime = std::chrono::seconds(5);   // of a run that is there
constexpr auto kRequestTime = std::chrono::seconds(5);  // of a peer that connected

// The address of the socket in the folder that `folder` is open on: the path itself may be longer than an address.
sockaddr_un address_in(const UniqueFd& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder.get(), kControlName);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

UniqueFd open_folder(const std::string& folder) {
  return UniqueFd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

UniqueFd make_socket(int flags) { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)); }

// Who is at the other end: "process 4711", "process 4711 of root"; "" when they are another user.
std::string allowed_sender(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return "";
  if (peer.uid == ::geteuid()) return fmt::format("process {}", peer.pid);
  return peer.uid == 0 ? fmt::format("process {} of root", peer.pid) : "";
}

UniqueFd listen_in(const std::string& path) {
  const UniqueFd folder = open_folder(path);
  UniqueFd fd = make_socket(SOCK_NONBLOCK);
  if (!folder || !fd) return UniqueFd();
  const sockaddr_un address = address_in(folder);
  ::fchmod(fd.get(), 0600);  // the file gets this mode
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), static_cast<int>(kMostPeers)) != 0)
    return UniqueFd();
  return fd;
}

[[noreturn]] void throw_no_answer(const std::string& folder, int code) {
  throw Error(ErrorKind::io, fmt::format("the run in {}/ does not answer: {}", folder, describe_errno(code)));
}

}  // namespace

ControlServer::ControlServer(EventLoop& loop, const LogFolder& folder, Answer answer)
    : loop_(loop), folder_(folder), answer_(std::move(answer)), socket_(listen_in(folder.path())) {
  if (socket_) folder_.adopt(kControlName);
  if (socket_) loop_.watch_readable(socket_.get(), [this] { welcome(); });
}

ControlServer::~ControlServer() {
  while (!peers_.empty()) drop(peers_.begin()->first);
  if (!socket_) return;
  loop_.forget(socket_.get());
  folder_.remove(kControlName);
}

void ControlServer::welcome() {
  UniqueFd fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd || peers_.size() >= kMostPeers) return;
  std::string sender = allowed_sender(fd.get());
  if (sender.empty()) return;
  const int number = fd.get();
  const PeerId id = ++last_id_;
  peers_[id] = {.fd = std::move(fd), .sender = std::move(sender), .request = {}};
  loop_.watch_readable(number, [this, id] { read_from(id); });
  loop_.call_at(Clock::now() + kRequestTime, [this, id] { drop(id); });
}

void ControlServer::read_from(PeerId id) {
  auto& [fd, sender, request] = peers_.at(id);
  std::array<char, kLongestRequest> buffer;
  const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) request.append(buffer.data(), static_cast<std::size_t>(count));
  const auto end = request.find('\n');
  if (count > 0 && end == std::string::npos && request.size() < kLongestRequest) return;
  if (end != std::string::npos) {
    const std::string text = answer_(request.substr(0, end), sender) + "\n";
    ::send(fd.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);  // fits into the socket's buffer
  }
  drop(id);
}

void ControlServer::drop(PeerId id) {
  const auto peer = peers_.find(id);
  if (peer == peers_.end()) return;
  loop_.forget(peer->second.fd.get());
  peers_.erase(peer);
}

bool is_answered(const std::string& folder) {
  const UniqueFd opened = open_folder(folder);
  const UniqueFd fd = make_socket(0);
  const sockaddr_un address = address_in(opened);
  return opened && fd &&
         ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

std::string ask_run(const std::string& folder, const std::string& request) {
  const UniqueFd opened = open_folder(folder);
  if (!opened) throw file_error(errno, "looking for a run in", folder);
  const UniqueFd fd = make_socket(0);
  const sockaddr_un address = address_in(opened);
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw Error(ErrorKind::missing, fmt::format("no fleetrun uses {}/ now", folder),
                "--log_dir names the folder of the run");
  const std::string line = request + "\n";
  if (::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    throw_no_answer(folder, errno);
  std::string answer;
  std::array<char, 65536> buffer;
  pollfd one{.fd = fd.get(), .events = POLLIN, .revents = 0};
  const int limit = static_cast<int>(std::chrono::milliseconds(kAnswerTime).count());
  while (::poll(&one, 1, limit) > 0) {
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count <= 0) break;
    answer.append(buffer.data(), static_cast<std::size_t>(count));
  }
  if (!answer.ends_with('\n')) throw_no_answer(folder, ETIMEDOUT);
  answer.pop_back();
  return answer;
}

}  // namespace fleetrun::launch
