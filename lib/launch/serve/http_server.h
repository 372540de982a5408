// Answers GET on one port, over HTTP/1.1 with one request per connection.
#pragma once
#include <functional>
#include <string>

#include "base/system/endpoint.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/peer_server.h"

namespace fleetrun::launch {

struct HttpAnswer {
  std::string status = "200 OK";
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::string headers = {};  // more of them, each with "\r\n"
};

// `path` is without what follows '?'. It starts with '/'.
using HttpHandler = std::function<HttpAnswer(const std::string& path)>;

class HttpServer {
 public:
  // Listens from now on. With port 0 the kernel chooses the port. Throws Error(temporary) when it cannot listen there; `flag` is
  // what the user chose the endpoint with.
  HttpServer(EventLoop& loop, const Endpoint& wanted, const std::string& flag, HttpHandler handler);

  const Endpoint& endpoint() const { return endpoint_; }  // with the port that it got

 private:
  std::string read_request(const Peer& peer, std::string input);

  Endpoint endpoint_;
  HttpHandler handler_;
  PeerServer server_;  // last: its callbacks use the members above
};

// The whole HTTP response. `request` ends with its empty line.
std::string answer_http(const std::string& request, const HttpHandler& handler);

}  // namespace fleetrun::launch
