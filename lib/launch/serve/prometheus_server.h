// Answers GET /metrics on one port: HTTP/1.1, a request a connection. It never blocks the loop that it lives in, and
// drops who sends too much or nothing.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/endpoint.h"
#include "base/unique_fd.h"
#include "launch/loop/event_loop.h"

namespace fleetrun::launch {

class PrometheusServer {
 public:
  // Listens from now on; `text` makes what is answered. Port 0: the kernel chooses. Throws Error(temporary) when it
  // cannot listen there.
  PrometheusServer(EventLoop& loop, const Endpoint& wanted, std::function<std::string()> text);
  ~PrometheusServer();
  PrometheusServer(const PrometheusServer&) = delete;
  PrometheusServer& operator=(const PrometheusServer&) = delete;

  const Endpoint& endpoint() const { return endpoint_; }  // with the port that it got

 private:
  using PeerId = std::uint64_t;
  struct Peer {
    UniqueFd fd;
    std::string request, answer;
    std::size_t sent = 0;
  };

  void welcome();
  void welcome_later();
  void read_from(PeerId id);
  void write_to(PeerId id);
  void drop(PeerId id);

  EventLoop& loop_;
  Endpoint endpoint_;
  std::function<std::string()> text_;
  UniqueFd socket_;
  std::map<PeerId, Peer> peers_;
  PeerId last_id_ = 0;
};

// The whole answer to a request up to its empty line.
std::string answer_http(const std::string& request, const std::function<std::string()>& text);

}  // namespace fleetrun::launch
