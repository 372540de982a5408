#include "launch/store/store_server.h"

#include <fcntl.h>

#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/error.h"
#include "launch/store/store_connection.h"
#include "launch/store/store_state.h"

namespace fleetrun::launch {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using store_protocol::Message;

namespace {

constexpr auto kAcceptRetryPause = std::chrono::milliseconds(100);  // when descriptors have run out

// Asio opens its sockets without close-on-exec; the launcher starts workers while they are open.
void keep_from_children(int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); }

tcp::acceptor listen_on(asio::io_context& loop, const std::string& address, std::uint16_t port) {
  try {
    tcp::acceptor acceptor(loop, tcp::endpoint(asio::ip::make_address(address), port));
    keep_from_children(acceptor.native_handle());
    return acceptor;
  } catch (const boost::system::system_error& error) {
    throw Error(ErrorKind::temporary,
                fmt::format("the store cannot listen on {}:{}: {}", address, port, error.code().message()));
  }
}

}  // namespace

class StoreServer::Impl : public std::enable_shared_from_this<StoreServer::Impl> {
 public:
  Impl(asio::io_context& loop, StoreServerOptions options)
      : options_(std::move(options)),
        state_(options_.key, options_.run_id, options_.attempt, options_.world_size),
        acceptor_(listen_on(loop, options_.address, options_.port)),
        accept_pause_(loop),
        missing_timer_(loop),
        dropped_timer_(loop) {}

  void start() {
    accept_next();
    watch_missing();
  }

  void begin_attempt(int attempt, int world_size) {
    close_connections("the next attempt begins");
    state_.begin_attempt(attempt, world_size);
    watch_missing();
  }

  void close() {
    if (std::exchange(closed_, true)) return;
    error_code ignored;
    acceptor_.close(ignored);
    for (asio::steady_timer* timer : {&accept_pause_, &missing_timer_, &dropped_timer_}) timer->cancel();
    close_connections("the store closes");
  }

  Endpoint endpoint() const { return endpoint_; }
  const StoreState& state() const { return state_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  using PeerId = StoreState::PeerId;

  void accept_next() {
    if (closed_ || accepting_ || unproven_ >= options_.max_unproven) return;
    accepting_ = true;
    acceptor_.async_accept([self = shared_from_this()](error_code problem, tcp::socket socket) {
      self->accepting_ = false;
      if (self->closed_) return;
      if (problem) return self->accept_later();
      self->welcome(std::move(socket));
      self->accept_next();
    });
  }

  void accept_later() {
    accept_pause_.expires_after(kAcceptRetryPause);
    accept_pause_.async_wait([self = shared_from_this()](error_code problem) {
      if (!problem) self->accept_next();
    });
  }

  void welcome(tcp::socket socket) {
    keep_from_children(socket.native_handle());
    const PeerId id = ++last_id_;
    const auto connection = std::make_shared<StoreConnection>(std::move(socket));
    connections_[id] = connection;
    state_.connected(id, make_nonce());
    ++unproven_;
    // The server outlives its connections' callbacks: they are let go when a connection closes.
    connection->start({.on_message = [this, id](const Message& message) { on_message(id, message); },
                       .on_end = [this, id](const std::string& why) { on_end(id, why); }},
                      options_.handshake_deadline);
  }

  void on_message(PeerId id, const Message& message) {
    const bool was_proven = state_.proven(id);
    const StoreState::Actions actions = state_.on(id, message);
    if (!was_proven && state_.proven(id)) on_proven(id);
    for (const auto& action : actions) {
      if (const auto* send = std::get_if<StoreState::Send>(&action)) {
        if (const auto to = connections_.find(send->to); to != connections_.end())
          std::shared_ptr(to->second)->send(send->message);  // held: sending may close and erase it
      } else if (const auto* drop = std::get_if<StoreState::Drop>(&action)) {
        if (const auto peer = connections_.find(drop->peer); peer != connections_.end())
          std::shared_ptr(peer->second)->close_when_sent(drop->why);
      }
    }
  }

  void on_proven(PeerId id) {
    connections_.at(id)->proven();
    --unproven_;
    accept_next();
    if (state_.missing_ranks().empty()) missing_timer_.cancel();
  }

  void on_end(PeerId id, const std::string& why) {
    if (!state_.proven(id)) {
      --unproven_;
      if (!closed_) count_dropped(connections_.at(id)->peer_address(), why);
    }
    state_.gone(id);
    connections_.erase(id);
    accept_next();
  }

  void close_connections(const std::string& why) {
    const auto connections = connections_;  // each one that ends takes itself out
    for (const auto& [id, connection] : connections) connection->close(why);
  }

  // The first one is told of at once, those that follow together, once a minute.
  void count_dropped(const std::string& peer, const std::string& why) {
    ++dropped_;
    last_dropped_ = fmt::format("last {}: {}", peer, why);
    if (!dropped_timer_armed_) report_dropped();
  }

  void report_dropped() {
    dropped_timer_armed_ = dropped_ > reported_dropped_;
    if (!dropped_timer_armed_) return;
    options_.say(fmt::format("dropped {} connections without a valid handshake ({})",
                             dropped_ - reported_dropped_, last_dropped_));
    reported_dropped_ = dropped_;
    dropped_timer_.expires_after(options_.report_dropped_every);
    dropped_timer_.async_wait([self = shared_from_this()](error_code problem) {
      if (!problem && !self->closed_) self->report_dropped();
    });
  }

  void watch_missing() {
    waiting_since_ = std::chrono::steady_clock::now();
    wait_to_report_missing();
  }

  void wait_to_report_missing() {
    missing_timer_.expires_after(options_.report_missing_every);
    missing_timer_.async_wait([self = shared_from_this()](error_code problem) {
      if (!problem && !self->closed_) self->report_missing();
    });
  }

  void report_missing() {
    const std::vector<int> missing = state_.missing_ranks();
    if (missing.empty()) return;
    const auto waited = std::chrono::steady_clock::now() - waiting_since_;
    options_.say(fmt::format("waiting for rank {} ({} s)", fmt::join(missing, ", "),
                             std::chrono::round<std::chrono::seconds>(waited).count()));
    wait_to_report_missing();
  }

  const StoreServerOptions options_;
  StoreState state_;
  tcp::acceptor acceptor_;
  const Endpoint endpoint_{options_.address, acceptor_.local_endpoint().port()};
  asio::steady_timer accept_pause_, missing_timer_, dropped_timer_;
  std::map<PeerId, std::shared_ptr<StoreConnection>> connections_;
  PeerId last_id_ = 0;
  std::size_t unproven_ = 0;
  bool accepting_ = false;
  bool closed_ = false;
  std::uint64_t dropped_ = 0;
  std::uint64_t reported_dropped_ = 0;
  std::string last_dropped_;
  bool dropped_timer_armed_ = false;
  std::chrono::steady_clock::time_point waiting_since_;
};

StoreServer::StoreServer(asio::io_context& loop, StoreServerOptions options)
    : impl_(std::make_shared<Impl>(loop, std::move(options))) {
  impl_->start();
}

StoreServer::~StoreServer() { impl_->close(); }

Endpoint StoreServer::endpoint() const { return impl_->endpoint(); }

void StoreServer::begin_attempt(int attempt, int world_size) { impl_->begin_attempt(attempt, world_size); }

std::vector<int> StoreServer::missing_ranks() const { return impl_->state().missing_ranks(); }

std::uint64_t StoreServer::dropped() const { return impl_->dropped(); }

void StoreServer::close() { impl_->close(); }

}  // namespace fleetrun::launch
