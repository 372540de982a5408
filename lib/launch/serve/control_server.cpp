#include "launch/serve/control_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>

#include "launch/logs/control_address.h"
#include "launch/logs/log_names.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestRequest = 64 * 1024;  // bytes: a list of all of 10,000 ranks
constexpr std::size_t kMostPeers = 64;              // at a time
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);
constexpr auto kRequestTime = std::chrono::seconds(5);  // from the coming of a peer to the end of its request

// Who is at the other end: "process 4711", "process 4711 of root"; "" when they are another user.
std::string allowed_sender(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return "";
  if (peer.uid == ::geteuid()) return fmt::format("process {}", peer.pid);
  return peer.uid == 0 ? fmt::format("process {} of root", peer.pid) : "";
}

UniqueFd listen_in(const std::string& path) {
  const UniqueFd folder = open_control_folder(path);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!folder || !fd) return UniqueFd();
  const sockaddr_un address = address_in(folder);
  ::fchmod(fd.get(), 0600);  // the file gets this mode
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), static_cast<int>(kMostPeers)) != 0)
    return UniqueFd();
  return fd;
}

}  // namespace

ControlServer::ControlServer(EventLoop& loop, const LogFolder& folder, Answer answer)
    : loop_(loop), folder_(folder), answer_(std::move(answer)), socket_(listen_in(folder.path())) {
  if (socket_) folder_.adopt(kControlName);
  if (socket_) loop_.watch_readable(socket_.get(), [this] { welcome(); });
}

// Those who wait for the end of the run see their connection close with the process, when nothing of it is left.
ControlServer::~ControlServer() {
  close();
  for (auto& [id, peer] : peers_) {
    loop_.forget(peer.fd.get());
    peer.fd.release();
  }
}

void ControlServer::close() {
  if (!socket_) return;
  loop_.forget(socket_.get());
  folder_.remove(kControlName);
  socket_.reset();
  std::erase_if(peers_, [this](const auto& entry) {
    if (!entry.second.was_answered()) loop_.forget(entry.second.fd.get());
    return !entry.second.was_answered();
  });
}

void ControlServer::welcome() {
  UniqueFd fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd && errno != EAGAIN && errno != EINTR) return welcome_later();
  if (!fd || peers_.size() >= kMostPeers) return;
  std::string sender = allowed_sender(fd.get());
  if (sender.empty()) return;
  const int number = fd.get();
  const PeerId id = ++last_id_;
  peers_[id].fd = std::move(fd);
  peers_[id].sender = std::move(sender);
  loop_.watch_readable(number, [this, id] { read_from(id); });
  loop_.call_at(Clock::now() + kRequestTime, [this, id] {
    const auto peer = peers_.find(id);
    if (peer != peers_.end() && peer->second.answer.empty()) drop(id);
  });
}

// Without a descriptor: who waits at the door would wake us all the time.
void ControlServer::welcome_later() {
  loop_.forget(socket_.get());
  loop_.call_at(Clock::now() + kAcceptRetry, [this] {
    if (socket_) loop_.watch_readable(socket_.get(), [this] { welcome(); });
  });
}

void ControlServer::read_from(PeerId id) {
  Peer& peer = peers_.at(id);
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(peer.fd.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return drop(id);
  if (!peer.answer.empty()) return;  // one question each
  peer.request.append(buffer.data(), static_cast<std::size_t>(count));
  const auto end = peer.request.find('\n');
  if (end != std::string::npos)
    peer.answer = answer_(peer.request.substr(0, end), peer.sender) + "\n";
  else if (peer.request.size() > kLongestRequest)
    peer.answer = fmt::format("{{\"error\": \"the request has more than {} bytes\"}}\n", kLongestRequest);
  if (!peer.answer.empty()) write_to(id);
}

void ControlServer::write_to(PeerId id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  const ssize_t count = ::send(peer.fd.get(), peer.answer.data() + peer.sent, peer.answer.size() - peer.sent,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0 && errno != EAGAIN && errno != EINTR) return drop(id);
  if (count > 0) peer.sent += static_cast<std::size_t>(count);
  if (!peer.was_answered()) loop_.when_writable(peer.fd.get(), [this, id] { write_to(id); });
}

void ControlServer::drop(PeerId id) {
  const auto peer = peers_.find(id);
  if (peer == peers_.end()) return;
  loop_.forget(peer->second.fd.get());
  peers_.erase(peer);
}

}  // namespace fleetrun::launch
