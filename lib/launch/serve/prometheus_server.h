// Answers GET /metrics on one port, over HTTP/1.1 with one request per connection.
#pragma once
#include <functional>
#include <string>

#include "base/system/endpoint.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/peer_server.h"

namespace fleetrun::launch {

class PrometheusServer {
 public:
  // Listens from now on; `text` makes the answer. With port 0 the kernel chooses the port. Throws Error(temporary) when
  // it cannot listen there.
  PrometheusServer(EventLoop& loop, const Endpoint& wanted, std::function<std::string()> text);

  const Endpoint& endpoint() const { return endpoint_; }  // with the port that it got

 private:
  std::string read_request(const Peer& peer, std::string input);

  Endpoint endpoint_;
  std::function<std::string()> text_;
  PeerServer server_;  // last: its callbacks use the members above
};

// The whole HTTP response. `request` ends with its empty line.
std::string answer_http(const std::string& request, const std::function<std::string()>& text);

}  // namespace fleetrun::launch
