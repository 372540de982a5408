#include "launch/loop/peer_server.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <deque>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fleetrun::launch {
namespace {

constexpr auto kAcceptRetryPause = std::chrono::milliseconds(100);  // when descriptors have run out
constexpr std::size_t kReadBytes = 16 * 1024;                       // at a time
constexpr std::size_t kMostUnsent =
    8;  // answers; an honest peer asks one thing at a time, so it has two at most

bool must_wait(int problem) { return problem == EAGAIN || problem == EINTR; }

std::string words_of(int problem) { return std::generic_category().message(problem); }

}  // namespace

struct PeerServer::Connection {
  Connection(EventLoop& loop, UniqueFd socket, std::string peer)
      : fd(std::move(socket)), deadline(loop), name(std::move(peer)) {}

  UniqueFd fd;
  Timer deadline;
  std::string name, input;
  std::deque<SharedBytes> output;
  std::size_t sent = 0;  // of the first
  bool stranger = true;
  std::optional<std::string> leaving;  // why it is dropped when all is sent
  bool told = false;                   // the protocol knows that it is dropped
};

PeerServer::PeerServer(EventLoop& loop, UniqueFd listener, PeerLimits limits, PeerProtocol protocol)
    : loop_(loop), limits_(limits), protocol_(std::move(protocol)), retry_(loop) {
  listen_also(std::move(listener));
}

PeerServer::~PeerServer() {
  stop_listening();
  for (const auto& [id, connection] : connections_) loop_.forget(connection->fd.get());
}

void PeerServer::listen() {
  if (listening_ || strangers_ >= limits_.strangers) return;
  listening_ = true;
  for (const UniqueFd& listener : listeners_)
    loop_.watch_readable(listener.get(), [this, number = listener.get()] { accept(number); });
}

void PeerServer::listen_to(UniqueFd listener) {
  stop_listening();
  listen_also(std::move(listener));
}

void PeerServer::listen_also(UniqueFd listener) {
  pause_listening();
  if (listener) listeners_.push_back(std::move(listener));
  listen();
}

void PeerServer::pause_listening() {
  if (!std::exchange(listening_, false)) return;
  for (const UniqueFd& listener : listeners_) loop_.forget(listener.get());
}

void PeerServer::stop_listening() {
  pause_listening();
  retry_.cancel();
  listeners_.clear();
}

void PeerServer::accept(int listener) {
  UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd && must_wait(errno)) return;
  if (!fd) {  // a peer that waits would wake us all the time
    pause_listening();
    return retry_.call_at(Clock::now() + kAcceptRetryPause, [this] { listen(); });
  }
  const PeerId id = ++last_id_;
  const int number = fd.get();
  const auto name = protocol_.welcome(id, number);
  if (!name) return;
  const auto& connection = connections_[id] = std::make_unique<Connection>(loop_, std::move(fd), *name);
  if (++strangers_ >= limits_.strangers) pause_listening();
  loop_.watch_readable(number, [this, id] { read_from(id); });
  const auto milliseconds = std::chrono::round<std::chrono::milliseconds>(limits_.patience).count();
  connection->deadline.call_at(Clock::now() + limits_.patience, [this, id, milliseconds] {
    drop(id, fmt::format("no handshake within {} ms", milliseconds));
  });
}

void PeerServer::read_from(PeerId id) {
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  std::array<char, kReadBytes> buffer;
  const ssize_t count = ::recv(connection->fd.get(), buffer.data(), buffer.size(), 0);
  if (count < 0 && must_wait(errno)) return;
  if (count <= 0) return drop(id, count == 0 ? std::string(kPeerLeft) : words_of(errno));
  if (connection->leaving) return;
  std::string input = std::exchange(connection->input, {});
  understand(id, std::move(input.append(buffer.data(), static_cast<std::size_t>(count))));
}

void PeerServer::understand(PeerId id, std::string input) {
  const Peer peer = {id, find(id)->name};
  std::string rest = protocol_.on_input(peer, std::move(input));
  Connection* const connection = find(id);
  if (connection == nullptr || connection->leaving) return;
  if (rest.size() > limits_.input) return drop(id, fmt::format("it says more than {} bytes", limits_.input));
  connection->input = std::move(rest);
}

void PeerServer::trust(PeerId id) {
  Connection* const connection = find(id);
  if (connection == nullptr || !std::exchange(connection->stranger, false)) return;
  connection->deadline.cancel();
  --strangers_;
  listen();
}

void PeerServer::send(PeerId id, std::string bytes) {
  send(id, std::make_shared<const std::string>(std::move(bytes)));
}

void PeerServer::send(PeerId id, SharedBytes bytes) {
  Connection* const connection = find(id);
  if (connection == nullptr || connection->leaving) return;
  if (connection->output.size() == kMostUnsent) return drop(id, "it does not read its answers");
  connection->output.push_back(std::move(bytes));
  if (connection->output.size() == 1) write_to(id);
}

// One piece at a time, so that a large answer does not hold up the loop.
void PeerServer::write_to(PeerId id) {
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  auto& output = connection->output;
  std::size_t& sent = connection->sent;
  const int fd = connection->fd.get();
  const ssize_t count =
      ::send(fd, output.front()->data() + sent, output.front()->size() - sent, MSG_NOSIGNAL);
  if (count < 0 && !must_wait(errno)) return drop(id, words_of(errno));
  if (count > 0) sent += static_cast<std::size_t>(count);
  if (sent == output.front()->size()) {
    output.pop_front();
    sent = 0;
  }
  if (!output.empty()) return loop_.when_writable(fd, [this, id] { write_to(id); });
  if (connection->leaving) part_from(id, *connection);
}

void PeerServer::drop_when_sent(PeerId id, const std::string& why) {
  Connection* const connection = find(id);
  if (connection == nullptr || connection->leaving) return;
  connection->leaving = why;
  if (!connection->stranger)
    connection->deadline.call_at(Clock::now() + limits_.patience, [this, id, why] { drop(id, why); });
  if (connection->output.empty()) part_from(id, *connection);
}

// If we closed the socket with unread input, the kernel would reset the connection and the peer could lose our last
// answer. So the peer closes first, or its deadline passes.
void PeerServer::part_from(PeerId id, Connection& connection) {
  ::shutdown(connection.fd.get(), SHUT_WR);
  say_dropped(id, connection, *connection.leaving);
}

void PeerServer::drop(PeerId id, const std::string& why) {
  const auto gone = connections_.extract(id);  // first, as the protocol may call us
  if (!gone) return;
  Connection& connection = *gone.mapped();
  loop_.forget(connection.fd.get());
  if (connection.stranger) --strangers_;
  say_dropped(id, connection, connection.leaving.value_or(why));
  listen();
}

void PeerServer::say_dropped(PeerId id, Connection& connection, const std::string& why) {
  if (!std::exchange(connection.told, true) && protocol_.on_drop)
    protocol_.on_drop({id, connection.name}, why);
}

bool PeerServer::is_trusted(PeerId id) const {
  const auto found = connections_.find(id);
  return found != connections_.end() && !found->second->stranger;
}

bool PeerServer::listens_to(PeerId id) const {
  const auto found = connections_.find(id);
  return found != connections_.end() && !found->second->leaving;
}

void PeerServer::drop_all(const std::string& why) {
  while (!connections_.empty()) drop(connections_.begin()->first, why);
}

void PeerServer::drop_unfinished(const std::string& why) {
  std::vector<PeerId> unfinished;
  for (const auto& [id, connection] : connections_)
    if (connection->stranger || !connection->output.empty()) unfinished.push_back(id);
  for (const PeerId id : unfinished) drop(id, why);
}

void PeerServer::leave_open() {
  for (auto& [id, connection] : connections_) {
    loop_.forget(connection->fd.get());
    connection->fd.release();
  }
  connections_.clear();
}

PeerServer::Connection* PeerServer::find(PeerId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

}  // namespace fleetrun::launch
