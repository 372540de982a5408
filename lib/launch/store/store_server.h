// The store in the launcher: where the ranks of a run meet. It lives in the launcher's event loop, so that it
// outlives ranks; it never blocks, and bytes of strangers are counted and dropped.
// What is said on the wire: base/store_protocol.h.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/endpoint.h"
#include "base/run_key.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launch {

struct StoreServerOptions {
  std::string address = "127.0.0.1";  // the one interface to listen on
  std::uint16_t port = 0;             // 0: the kernel chooses
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
  StoreServer(boost::asio::io_context& loop, StoreServerOptions options);
  ~StoreServer();  // like close()

  Endpoint endpoint() const;  // with the port that it got; this goes into RankEnv::store

  // Forgets all keys and closes all connections: from now on only ranks of this attempt are let in.
  void begin_attempt(int attempt, int world_size);

  std::vector<int> missing_ranks() const;  // of this attempt, those that never came; ascending
  std::uint64_t dropped() const;           // connections without a valid handshake, so far

  // Stops listening and closes everything, so that the loop can run out of work.
  void close();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with the handlers still queued in the loop
};

}  // namespace fleetrun::launch
