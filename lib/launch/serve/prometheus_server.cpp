#include "launch/serve/prometheus_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>

#include "base/error.h"
#include "launch/host/port_owner.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestScrape = 8192;                        // bytes; Prometheus sends about 300
constexpr std::size_t kMostScrapers = 16;                           // at a time
constexpr auto kAcceptRetryPause = std::chrono::milliseconds(100);  // when descriptors have run out
constexpr auto kPeerTime = std::chrono::seconds(10);  // from its coming to its end; Prometheus waits as long

UniqueFd listen_on(Endpoint& endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  if (::inet_pton(AF_INET, endpoint.host.c_str(), &address.sin_addr) != 1)
    throw Error(ErrorKind::usage,
                fmt::format("--metrics_port: \"{}\" is no address of this host as 127.0.0.1", endpoint.host));
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  socklen_t size = sizeof address;
  if (fd) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!fd || ::bind(fd.get(), generic, size) != 0 ||
      ::listen(fd.get(), static_cast<int>(kMostScrapers)) != 0 ||
      ::getsockname(fd.get(), generic, &size) != 0) {
    const int problem = errno;
    const std::string owner = problem == EADDRINUSE ? describe_port_owner(endpoint.port) : "";
    throw Error(ErrorKind::temporary,
                fmt::format("--metrics_port: nobody can listen on {}{}: {}", endpoint.describe(),
                            owner.empty() ? "" : ", which is taken by " + owner, describe_errno(problem)),
                "--metrics_port=0 takes a free one");
  }
  endpoint.port = ntohs(address.sin_port);
  return fd;
}

std::string answer_with(const char* status, const std::string& type, const std::string& body,
                        bool with_body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                     status, type, body.size(), with_body ? body : "");
}

}  // namespace

std::string answer_http(const std::string& request, const std::function<std::string()>& text) {
  constexpr const char* kPlain = "text/plain; charset=utf-8";
  const std::string line = request.substr(0, request.find("\r\n"));
  const std::size_t space = line.find(' ');
  const std::string method = line.substr(0, space);
  const std::string target =
      space == std::string::npos ? "" : line.substr(space + 1, line.find(' ', space + 1) - space - 1);
  if (target.empty()) return answer_with("400 Bad Request", kPlain, "no HTTP request\n", true);
  const bool head = method == "HEAD";
  if (method != "GET" && !head) return answer_with("405 Method Not Allowed", kPlain, "only GET\n", true);
  if (target.substr(0, target.find('?')) != "/metrics")
    return answer_with("404 Not Found", kPlain, "only /metrics\n", !head);
  return answer_with("200 OK", "text/plain; version=0.0.4; charset=utf-8", text(), !head);
}

PrometheusServer::PrometheusServer(EventLoop& loop, const Endpoint& wanted, std::function<std::string()> text)
    : loop_(loop), endpoint_(wanted), text_(std::move(text)), socket_(listen_on(endpoint_)) {
  loop_.watch_readable(socket_.get(), [this] { welcome(); });
}

PrometheusServer::~PrometheusServer() {
  while (!peers_.empty()) drop(peers_.begin()->first);
  loop_.forget(socket_.get());
}

void PrometheusServer::welcome() {
  UniqueFd fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) return welcome_later();
  if (!fd || peers_.size() >= kMostScrapers) return;
  const int number = fd.get();
  const PeerId id = ++last_id_;
  peers_[id].fd = std::move(fd);
  loop_.watch_readable(number, [this, id] { read_from(id); });
  loop_.call_at(Clock::now() + kPeerTime, [this, id] { drop(id); });
}

// Who waits at the door would wake us all the time.
void PrometheusServer::welcome_later() {
  loop_.forget(socket_.get());
  loop_.call_at(Clock::now() + kAcceptRetryPause,
                [this] { loop_.watch_readable(socket_.get(), [this] { welcome(); }); });
}

void PrometheusServer::read_from(PeerId id) {
  Peer& peer = peers_.at(id);
  std::array<char, kLongestScrape> buffer;
  const ssize_t count = ::read(peer.fd.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return drop(id);
  if (!peer.answer.empty()) return;  // it has asked; what else it says does not matter
  peer.request.append(buffer.data(), static_cast<std::size_t>(count));
  if (peer.request.find("\r\n\r\n") != std::string::npos) {
    peer.answer = answer_http(peer.request, text_);
    write_to(id);
  } else if (peer.request.size() >= kLongestScrape) {
    drop(id);
  }
}

// The peer closes when it has everything.
void PrometheusServer::write_to(PeerId id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  const ssize_t count = ::send(peer.fd.get(), peer.answer.data() + peer.sent, peer.answer.size() - peer.sent,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0 && errno != EAGAIN && errno != EINTR) return drop(id);
  if (count > 0) peer.sent += static_cast<std::size_t>(count);
  if (peer.sent == peer.answer.size())
    ::shutdown(peer.fd.get(), SHUT_WR);
  else
    loop_.when_writable(peer.fd.get(), [this, id] { write_to(id); });
}

void PrometheusServer::drop(PeerId id) {
  const auto peer = peers_.find(id);
  if (peer == peers_.end()) return;
  loop_.forget(peer->second.fd.get());
  peers_.erase(peer);
}

}  // namespace fleetrun::launch
