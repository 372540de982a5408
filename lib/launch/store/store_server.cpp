#include "launch/store/store_server.h"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/name_ranks.h"
#include "launch/loop/listen_on.h"
#include "launch/loop/read_frames.h"

namespace fleetrun::launch {
namespace {

constexpr int kTries = 5;  // to find a port that is free at all addresses

UniqueFd listen_or_throw(Endpoint& endpoint) {
  const std::string wanted = endpoint.describe();
  UniqueFd fd = listen_on(endpoint, SOMAXCONN);
  if (!fd)
    throw Error(ErrorKind::temporary, fmt::format("the store cannot listen on {}: {}", wanted,
                                                  std::generic_category().message(errno)));
  return fd;
}

}  // namespace

StoreServer::StoreServer(EventLoop& loop, StoreServerOptions options)
    : options_(std::move(options)),
      endpoint_{options_.address, options_.port},
      state_(options_.key, options_.run_id, options_.attempt, options_.world_size),
      missing_timer_(loop),
      dropped_timer_(loop),
      peers_(loop, listen_or_throw(endpoint_),
             {.strangers = options_.max_unproven,
              .patience = options_.handshake_deadline,
              .input = store_protocol::kLengthBytes + store_protocol::kMaxFrame},
             {.welcome =
                  [this](PeerId id, int fd) {
                    state_.connected(id, make_nonce());
                    return welcome_peer(fd);
                  },
              .on_input =
                  [this](const Peer& peer, std::string input) {
                    return read_frames(
                        peers_, peer.id, std::move(input),
                        [&](const store_protocol::Message& message) { on_message(peer.id, message); });
                  },
              .on_drop = [this](const Peer& peer, const std::string& why) { on_drop(peer, why); }}) {
  for (int tries = 1; !listen_at_own_addresses() && options_.port == 0 && tries < kTries; ++tries) {
    endpoint_.port = 0;
    peers_.listen_to(listen_or_throw(endpoint_));
  }
  watch_missing();
}

StoreServer::~StoreServer() { close(); }

// False: another program has the port at one of them.
bool StoreServer::listen_at_own_addresses() {
  also_at_.clear();
  for (const std::string& address : options_.own_addresses) {
    Endpoint place = {address, endpoint_.port};
    if (address == endpoint_.host) continue;
    UniqueFd listener = listen_on(place, SOMAXCONN);
    if (!listener && errno == EADDRINUSE) return false;
    if (!listener) continue;
    peers_.listen_also(std::move(listener));
    also_at_.push_back(address);
  }
  return true;
}

void StoreServer::begin_attempt(int attempt, int world_size) {
  peers_.drop_all("the next attempt begins");
  state_.begin_attempt(attempt, world_size);
  watch_missing();
}

void StoreServer::close() {
  if (std::exchange(closed_, true)) return;
  peers_.stop_listening();
  missing_timer_.cancel();
  dropped_timer_.cancel();
  peers_.drop_all("the store closes");
}

void StoreServer::on_message(PeerId id, const store_protocol::Message& message) {
  const StoreState::Actions actions = state_.on(id, message);
  if (state_.proven(id) && !peers_.is_trusted(id)) {
    peers_.trust(id);
    if (state_.missing_ranks().empty()) missing_timer_.cancel();
  }
  for (const auto& action : actions) {
    if (const auto* send = std::get_if<StoreState::Send>(&action))
      peers_.send(send->to, store_protocol::encode(send->message));
    else if (const auto* drop = std::get_if<StoreState::Drop>(&action))
      peers_.drop_when_sent(drop->peer, drop->why);
  }
}

// The first dropped peer is reported at once, those that follow together, once a minute.
void StoreServer::on_drop(const Peer& peer, const std::string& why) {
  const bool proven = state_.proven(peer.id);
  state_.gone(peer.id);
  if (proven || closed_) return;
  ++dropped_.count;
  dropped_.last = fmt::format("last {}: {}", peer.name, why);
  if (!dropped_.will_report) report_dropped();
}

void StoreServer::report_dropped() {
  dropped_.will_report = dropped_.count > dropped_.reported;
  if (!dropped_.will_report) return;
  options_.say(fmt::format("dropped {} connections without a valid handshake ({})",
                           dropped_.count - dropped_.reported, dropped_.last));
  dropped_.reported = dropped_.count;
  dropped_timer_.call_at(Clock::now() + options_.report_dropped_every, [this] { report_dropped(); });
}

void StoreServer::watch_missing() {
  waiting_since_ = Clock::now();
  report_missing_later();
}

void StoreServer::report_missing_later() {
  missing_timer_.call_at(Clock::now() + options_.report_missing_every, [this] { report_missing(); });
}

void StoreServer::report_missing() {
  const std::vector<int> missing = state_.missing_ranks();
  if (missing.empty()) return;
  options_.say(fmt::format("waiting for {} ({} s)", name_ranks(missing),
                           std::chrono::round<std::chrono::seconds>(Clock::now() - waiting_since_).count()));
  report_missing_later();
}

}  // namespace fleetrun::launch
