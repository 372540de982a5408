// The store in the launcher: where the ranks of a run meet. It lives in the launcher's event loop, so that it
// outlives ranks; it never blocks, and bytes of strangers are counted and dropped.
// base/run/store_protocol.h describes the messages.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/run/run_key.h"
#include "base/run/store_protocol.h"
#include "base/system/endpoint.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/peer_server.h"
#include "launch/loop/timer.h"
#include "launch/store/store_state.h"

namespace fleetrun::launch {

struct StoreServerOptions {
  std::string address = "127.0.0.1";  // to listen on
  // It listens on these, too, at the same port. It leaves out addresses of other hosts.
  std::vector<std::string> own_addresses = {};
  std::uint16_t port = 0;  // 0: the kernel chooses
  RunKey key;
  std::string run_id;
  int attempt = 0;
  int world_size = 1;
  // "waiting for rank 2, 3 (10 s)", "dropped 3 strangers ...": lines for people, without a line's end.
  std::function<void(std::string_view line)> say = [](std::string_view) {};

  std::chrono::milliseconds handshake_deadline = std::chrono::seconds(5);  // then a silent peer is dropped
  std::size_t max_unproven = 64;                                           // peers in a handshake at a time
  std::chrono::milliseconds report_missing_every = std::chrono::seconds(10);
  std::chrono::milliseconds report_dropped_every = std::chrono::minutes(1);
};

class StoreServer {
 public:
  // Listens from now on; serves while somebody runs `loop`, from that one thread. Throws Error(temporary)
  // when it cannot listen there.
  StoreServer(EventLoop& loop, StoreServerOptions options);
  ~StoreServer();  // like close()
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  const Endpoint& endpoint() const {
    return endpoint_;
  }  // with the port that it got; this goes into RankEnv::store

  // Those of own_addresses at which it listens.
  const std::vector<std::string>& also_at() const { return also_at_; }

  // Forgets all keys and closes all connections: from now on only ranks of this attempt are let in.
  void begin_attempt(int attempt, int world_size);

  std::vector<int> missing_ranks() const { return state_.missing_ranks(); }  // of this attempt, ascending
  std::uint64_t dropped() const { return dropped_.count; }  // connections without a valid handshake, so far

  // Stops listening and closes everything, so that the loop can run out of work.
  void close();

 private:
  struct Dropped {
    std::uint64_t count = 0, reported = 0;
    std::string last;  // in words
    bool will_report = false;
  };

  bool listen_at_own_addresses();
  void on_message(PeerId id, const store_protocol::Message& message);
  void on_drop(const Peer& peer, const std::string& why);
  void report_dropped();
  void watch_missing();
  void report_missing_later();
  void report_missing();

  const StoreServerOptions options_;
  Endpoint endpoint_;
  std::vector<std::string> also_at_;
  StoreState state_;
  bool closed_ = false;
  Dropped dropped_;
  Timer missing_timer_, dropped_timer_;
  TimePoint waiting_since_;
  PeerServer peers_;  // last: it calls the others
};

}  // namespace fleetrun::launch
