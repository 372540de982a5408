#include "launch/serve/http_server.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/host/port_owner.h"
#include "launch/loop/listen_on.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestHttpRequest = 8192;     // bytes; Prometheus sends about 300
constexpr std::size_t kMostHttpClients = 16;          // at a time
constexpr auto kPeerTime = std::chrono::seconds(10);  // from its coming to its end; Prometheus waits as long

UniqueFd listen_or_throw(Endpoint& endpoint, const std::string& flag) {
  UniqueFd fd = listen_on(endpoint, kMostHttpClients);
  if (fd) return fd;
  const int problem = errno;
  if (problem == EINVAL || problem == EADDRNOTAVAIL)
    throw Error(ErrorKind::usage, fmt::format("{}: \"{}\" is not an address of this host, such as 127.0.0.1",
                                              flag, endpoint.host));
  const std::string owner = problem == EADDRINUSE ? describe_port_owner(endpoint.port) : "";
  throw Error(ErrorKind::temporary,
              fmt::format("{}: fleetrun cannot listen on {}{}: {}", flag, endpoint.describe(),
                          owner.empty() ? "" : ", which is taken by " + owner, describe_errno(problem)),
              flag + "=0 chooses a free port");
}

std::string write_answer(const HttpAnswer& answer, bool with_body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{}",
                     answer.status, answer.type, answer.body.size(), answer.headers,
                     with_body ? answer.body : "");
}

// Of "/metrics?x=y", or of "http://host:9100/metrics", as a proxy asks for it.
std::string path_of(std::string target) {
  constexpr std::string_view kScheme = "http://";
  if (target.starts_with(kScheme)) target.erase(0, std::min(target.find('/', kScheme.size()), target.size()));
  return target.substr(0, target.find('?'));
}

// Its headers are complete. A line may end with \n alone (RFC 9112, section 2.2).
bool is_whole(const std::string& request) {
  return request.find("\n\r\n") != std::string::npos || request.find("\n\n") != std::string::npos;
}

}  // namespace

std::string answer_http(const std::string& request, const HttpHandler& handler) {
  const std::string line = request.substr(0, request.find_first_of("\r\n"));
  const std::size_t space = line.find(' ');
  const std::string method = line.substr(0, space);
  const std::string target =
      space == std::string::npos ? "" : line.substr(space + 1, line.find(' ', space + 1) - space - 1);
  if (target.empty()) return write_answer({.status = "400 Bad Request", .body = "no HTTP request\n"}, true);
  const bool head = method == "HEAD";
  if (method != "GET" && !head)
    return write_answer({.status = "405 Method Not Allowed", .body = "only GET\n"}, true);
  return write_answer(handler(path_of(target)), !head);
}

HttpServer::HttpServer(EventLoop& loop, const Endpoint& wanted, const std::string& flag, HttpHandler handler)
    : endpoint_(wanted),
      handler_(std::move(handler)),
      server_(loop, listen_or_throw(endpoint_, flag),
              {.strangers = kMostHttpClients, .patience = kPeerTime, .input = kLongestHttpRequest},
              {.welcome = [](PeerId, int) { return ""; },
               .on_input = [this](const Peer& peer,
                                  std::string input) { return read_request(peer, std::move(input)); }}) {}

std::string HttpServer::read_request(const Peer& peer, std::string input) {
  if (!is_whole(input)) return input;
  server_.send(peer.id, answer_http(input, handler_));
  server_.drop_when_sent(peer.id, "it has its answer");
  return "";
}

}  // namespace fleetrun::launch
