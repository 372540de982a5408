#include "launch/serve/control_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/json/json_value.h"
#include "launch/logs/control_address.h"
#include "launch/logs/log_names.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestRequest = 64 * 1024;  // bytes: a list of all of 10,000 ranks
const std::string kTooLong = to_json(
    JsonValue::object({{"error", fmt::format("the request has more than {} bytes", kLongestRequest)}}));

// Who is at the other end: "process 4711", "process 4711 of root"; none when they are another user.
std::optional<std::string> allowed_sender(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  if (peer.uid == ::geteuid()) return fmt::format("process {}", peer.pid);
  return peer.uid == 0 ? std::optional(fmt::format("process {} of root", peer.pid)) : std::nullopt;
}

UniqueFd listen_in(const std::string& path) {
  const ControlAddress found = control_address(path);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!found.folder || !fd) return UniqueFd();
  ::fchmod(fd.get(), 0600);  // the file gets this mode
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&found.address), sizeof found.address) != 0 ||
      ::listen(fd.get(), static_cast<int>(kMostControlPeers)) != 0)
    return UniqueFd();
  return fd;
}

}  // namespace

ControlServer::ControlServer(EventLoop& loop, const LogFolder& folder, Answer answer,
                             Clock::duration patience)
    : folder_(folder), answer_(std::move(answer)) {
  UniqueFd socket = listen_in(folder.path());
  if (!socket) return;
  folder_.adopt(kControlName);
  const PeerLimits limits = {.strangers = kMostControlPeers, .patience = patience, .input = kLongestRequest};
  server_.emplace(
      loop, std::move(socket), limits,
      PeerProtocol{.welcome = [this](PeerId, int fd) { return welcome(fd); },
                   .on_input = [this](const Peer& peer,
                                      std::string input) { return read_request(peer, std::move(input)); }});
}

void ControlServer::listen_again() {
  if (!server_ || closed_) return;
  server_->listen_to(listen_in(folder_.path()));
  folder_.adopt(kControlName);
}

// Those who wait for the end of the run see their connection close with the process, when nothing of it is left.
ControlServer::~ControlServer() {
  close();
  if (server_) server_->leave_open();
}

void ControlServer::close() {
  if (!server_ || std::exchange(closed_, true)) return;
  server_->stop_listening();
  folder_.try_to_remove(kControlName);
  server_->drop_unfinished("the run is over");
}

std::optional<std::string> ControlServer::welcome(int fd) const {
  return server_->peers() < kMostControlPeers ? allowed_sender(fd) : std::nullopt;
}

// Takes one question of each peer. From then on the peer may stay.
std::string ControlServer::read_request(const Peer& peer, std::string input) {
  if (server_->is_trusted(peer.id)) return "";
  const std::size_t end = input.find('\n');
  const bool too_long = std::min(end, input.size()) > kLongestRequest;
  if (end == std::string::npos && !too_long) return input;
  server_->trust(peer.id);
  const Reply reply = [this, id = peer.id](const std::string& answer) { server_->send(id, answer + "\n"); };
  if (too_long)
    reply(kTooLong);
  else
    answer_(input.substr(0, end), peer.name, reply);
  return "";
}

}  // namespace fleetrun::launch
