#include "comm/gloo/gloo_watch.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include "base/error/error.h"
#include "base/system/endpoint.h"
#include "base/system/socket_address.h"

namespace fleetrun::comm {

namespace transport = gloo::transport;
using std::chrono::milliseconds;

// A buffer of Gloo's for each peer, so that a wait is for one peer and can be ended with that one's connection.
class WakeableBuffer : public transport::UnboundBuffer {
 public:
  WakeableBuffer(GlooWatch& watch, transport::Context& context, void* data, std::size_t bytes)
      : UnboundBuffer(data, bytes), watch_(watch), context_(context) {
    watch_.add(*this);
  }
  ~WakeableBuffer() override { watch_.remove(*this); }
  WakeableBuffer(const WakeableBuffer&) = delete;
  WakeableBuffer& operator=(const WakeableBuffer&) = delete;

  void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    of_peer(to).send(to, slot, offset, bytes);
    sending_to_.push_back(to);
  }
  void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    of_peer(from).recv(from, slot, offset, bytes);
    receiving_from_.push_back(from);
  }
  void recv(std::vector<int>, std::uint64_t, std::size_t, std::size_t) override {
    throw Error(ErrorKind::internal, "gloo: receiving from any of several ranks is not watched");
  }

  // For the one that began first, of those that nobody has waited for.
  bool waitSend(int* rank, milliseconds timeout) override {
    transport::UnboundBuffer& buffer = next(sending_to_);
    return buffer.waitSend(rank, timeout) || buffer.waitSend(rank, kOnceMore) || throw_woken();
  }
  bool waitRecv(int* rank, milliseconds timeout) override {
    transport::UnboundBuffer& buffer = next(receiving_from_);
    return buffer.waitRecv(rank, timeout) || buffer.waitRecv(rank, kOnceMore) || throw_woken();
  }
  void abortWaitSend() override {
    for (auto& [peer, buffer] : buffers_) buffer->abortWaitSend();
  }
  void abortWaitRecv() override {
    for (auto& [peer, buffer] : buffers_) buffer->abortWaitRecv();
  }

  // Called by the watch under its lock.
  void wake(std::optional<int> waiting_for) {
    const std::lock_guard lock(mutex_);
    for (auto& [peer, buffer] : buffers_) {
      if (waiting_for && peer != *waiting_for) continue;
      buffer->abortWaitSend();
      buffer->abortWaitRecv();
    }
  }

 private:
  // Who is woken looks whether its message comes after all: its peer may have gone after its work was done, and Gloo's thread
  // have no core for a while.
  static constexpr milliseconds kOnceMore{500};

  [[noreturn]] static bool throw_woken() { throw gloo::IoException("the connection is lost"); }

  transport::UnboundBuffer& of_peer(int peer) {
    const std::lock_guard lock(mutex_);
    auto& buffer = buffers_[peer];
    if (!buffer) buffer = context_.createUnboundBuffer(ptr, size);
    return *buffer;
  }
  transport::UnboundBuffer& next(std::deque<int>& peers) {
    if (peers.empty()) throw Error(ErrorKind::internal, "gloo: a wait for what was not begun");
    const int peer = peers.front();
    peers.pop_front();
    return of_peer(peer);
  }

  GlooWatch& watch_;
  transport::Context& context_;
  std::mutex mutex_;  // of the map: the watch looks into it from another thread
  std::map<int, std::unique_ptr<transport::UnboundBuffer>> buffers_;
  std::deque<int> sending_to_, receiving_from_;  // not yet waited for, the oldest first
};

namespace {

class WatchedContext : public transport::Context {
 public:
  WatchedContext(GlooWatch& watch, std::shared_ptr<transport::Context> inner)
      : Context(inner->rank, inner->size), watch_(watch), inner_(std::move(inner)) {}

  std::unique_ptr<transport::Pair>& getPair(int other) override { return inner_->getPair(other); }
  std::unique_ptr<transport::Pair>& createPair(int other) override {
    inner_->setTimeout(getTimeout());  // ours was set after both were made
    return inner_->createPair(other);
  }
  std::unique_ptr<transport::UnboundBuffer> createUnboundBuffer(void* data, std::size_t bytes) override {
    return std::make_unique<WakeableBuffer>(watch_, *inner_, data, bytes);
  }

 private:
  GlooWatch& watch_;
  const std::shared_ptr<transport::Context> inner_;  // shared: so Gloo makes it
};

class WatchedDevice : public transport::Device {
 public:
  WatchedDevice(GlooWatch& watch, std::shared_ptr<transport::Device> inner)
      : watch_(watch), inner_(std::move(inner)) {}

  std::string str() const override { return inner_->str(); }
  const std::string& getPCIBusID() const override { return inner_->getPCIBusID(); }
  int getInterfaceSpeed() const override { return inner_->getInterfaceSpeed(); }
  bool hasGPUDirect() const override { return inner_->hasGPUDirect(); }
  std::shared_ptr<transport::Context> createContext(int rank, int size) override {
    return std::make_shared<WatchedContext>(watch_, inner_->createContext(rank, size));
  }

 private:
  GlooWatch& watch_;
  const std::shared_ptr<transport::Device> inner_;
};

struct Ends {
  std::string ours, theirs;  // "10.0.0.1:4711"

  auto operator<=>(const Ends&) const = default;
};

// Nothing for what is not a connection.
std::optional<Ends> ends_of(int fd) {
  const auto ours = SocketAddress::own_end(fd);
  const auto theirs = ours ? SocketAddress::end_of_peer(fd) : std::nullopt;
  if (!theirs) return std::nullopt;
  return Ends{ours->endpoint().describe(), theirs->endpoint().describe()};
}

// Whether Gloo has not read everything yet: a peer that has gone may have sent all it owed.
bool has_bytes(int fd) {
  int count = 0;
  return ::ioctl(fd, FIONREAD, &count) == 0 && count > 0;
}

std::vector<int> open_descriptors() {
  std::vector<int> found;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", problem)) {
    const std::string name = entry.path().filename();
    int fd = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), fd).ec == std::errc()) found.push_back(fd);
  }
  return found;
}

}  // namespace

std::shared_ptr<transport::Device> GlooWatch::device(std::shared_ptr<transport::Device> inner) {
  return std::make_shared<WatchedDevice>(*this, std::move(inner));
}

// Gloo's bytes of an address begin with that of the kernel. (As text it has the port's bytes in another order.)
std::string describe_end(const std::vector<char>& bytes) {
  sockaddr_storage storage{};
  std::memcpy(&storage, bytes.data(), std::min(bytes.size(), sizeof storage));
  const auto address = SocketAddress::from(reinterpret_cast<const sockaddr&>(storage));
  return address ? address->endpoint().describe() : "";
}

std::vector<std::string> own_ends(gloo::Context& context) {
  std::vector<std::string> ends(static_cast<std::size_t>(context.size));
  for (int rank = 0; rank < context.size; ++rank)
    if (rank != context.rank)
      ends[static_cast<std::size_t>(rank)] = describe_end(context.getPair(rank)->address().bytes());
  return ends;
}

// Gloo does not say which descriptor a connection has, but where its ends are. It takes both: the kernel may give a port to a
// connection while another one has it.
void GlooWatch::begin(gloo::Context& context, const std::vector<std::string>& ends_of_peers) {
  const std::vector<std::string> ours = own_ends(context);
  std::map<Ends, int> rank_of;
  for (std::size_t rank = 0; rank < ours.size(); ++rank)
    if (!ours[rank].empty()) rank_of[{ours[rank], ends_of_peers[rank]}] = static_cast<int>(rank);
  std::vector<Connection> found;
  for (const int fd : open_descriptors()) {
    const std::optional<Ends> seen = ends_of(fd);
    if (!seen || rank_of.count(*seen) == 0) continue;
    UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy || ends_of(copy.get()) != seen) continue;  // another thread closed it meanwhile
    keep_asking(copy.get());
    found.push_back({rank_of.at(*seen), std::move(copy), parse_endpoint(seen->theirs).host});
    rank_of.erase(*seen);
  }
  if (!rank_of.empty())
    throw Error(ErrorKind::internal, fmt::format("gloo: no descriptor has the connection from {} to {}",
                                                 rank_of.begin()->first.ours, rank_of.begin()->first.theirs));
  const std::lock_guard lock(mutex_);
  connections_ = std::move(found);
}

void GlooWatch::end() {
  const std::lock_guard lock(mutex_);
  connections_.clear();
}

std::vector<UniqueFd> GlooWatch::take(GlooWatch& other, int ranks) {
  const std::scoped_lock lock(mutex_, other.mutex_);
  std::vector<UniqueFd> copies(static_cast<std::size_t>(ranks));
  for (Connection& connection : other.connections_) {
    copies[static_cast<std::size_t>(connection.rank)] =
        UniqueFd(::fcntl(connection.fd.get(), F_DUPFD_CLOEXEC, 0));
    connections_.push_back(std::move(connection));
  }
  other.connections_.clear();
  return copies;
}

void GlooWatch::look() {
  const std::lock_guard lock(mutex_);
  std::optional<LostPeer> worst;
  for (Connection& connection : connections_) {
    const PeerState state = state_of_peer(connection.fd.get());
    if (state == PeerState::there) connection.unanswered = unanswered_for(connection.fd.get());
    if (state == PeerState::there || (state == PeerState::closed && has_bytes(connection.fd.get()))) continue;
    if (!worst || state > worst->state)
      worst = LostPeer{connection.rank, connection.address, state, loses_full_packets(connection.fd.get())};
    const std::optional<int> waiting_for =
        state == PeerState::silent ? std::nullopt : std::optional(connection.rank);
    for (WakeableBuffer* buffer : buffers_) buffer->wake(waiting_for);
  }
  if (worst && worst->state != PeerState::silent) worst = falling_silent().value_or(*worst);
  if (!first_) first_ = worst;
}

// A peer that hears nothing any more, though it can still speak, may be the first to give up and to close its connections.
std::optional<LostPeer> GlooWatch::falling_silent() const {
  const auto longest =
      std::max_element(connections_.begin(), connections_.end(),
                       [](const Connection& a, const Connection& b) { return a.unanswered < b.unanswered; });
  if (longest == connections_.end() || longest->unanswered < kPeerSilence / 2) return std::nullopt;
  return LostPeer{longest->rank, longest->address, PeerState::silent, loses_full_packets(longest->fd.get())};
}

std::optional<LostPeer> GlooWatch::first_lost() const {
  const std::lock_guard lock(mutex_);
  return first_;
}

void GlooWatch::add(WakeableBuffer& buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.push_back(&buffer);
}

void GlooWatch::remove(WakeableBuffer& buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.erase(std::find(buffers_.begin(), buffers_.end(), &buffer));
}

}  // namespace fleetrun::comm
