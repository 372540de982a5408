#include "launch/serve/prometheus_server.h"

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

constexpr std::size_t kLongestScrape = 8192;          // bytes; Prometheus sends about 300
constexpr std::size_t kMostScrapers = 16;             // at a time
constexpr auto kPeerTime = std::chrono::seconds(10);  // from its coming to its end; Prometheus waits as long

UniqueFd listen_or_throw(Endpoint& endpoint) {
  UniqueFd fd = listen_on(endpoint, kMostScrapers);
  if (fd) return fd;
  const int problem = errno;
  if (problem == EINVAL || problem == EADDRNOTAVAIL)
    throw Error(ErrorKind::usage,
                fmt::format("--metrics_port: \"{}\" is not an address of this host, such as 127.0.0.1",
                            endpoint.host));
  const std::string owner = problem == EADDRINUSE ? describe_port_owner(endpoint.port) : "";
  throw Error(ErrorKind::temporary,
              fmt::format("--metrics_port: fleetrun cannot listen on {}{}: {}", endpoint.describe(),
                          owner.empty() ? "" : ", which is taken by " + owner, describe_errno(problem)),
              "--metrics_port=0 chooses a free port");
}

std::string answer_with(const char* status, const std::string& type, const std::string& body,
                        bool with_body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                     status, type, body.size(), with_body ? body : "");
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

std::string answer_http(const std::string& request, const std::function<std::string()>& text) {
  constexpr const char* kPlain = "text/plain; charset=utf-8";
  const std::string line = request.substr(0, request.find_first_of("\r\n"));
  const std::size_t space = line.find(' ');
  const std::string method = line.substr(0, space);
  const std::string target =
      space == std::string::npos ? "" : line.substr(space + 1, line.find(' ', space + 1) - space - 1);
  if (target.empty()) return answer_with("400 Bad Request", kPlain, "no HTTP request\n", true);
  const bool head = method == "HEAD";
  if (method != "GET" && !head) return answer_with("405 Method Not Allowed", kPlain, "only GET\n", true);
  if (path_of(target) != "/metrics") return answer_with("404 Not Found", kPlain, "only /metrics\n", !head);
  return answer_with("200 OK", "text/plain; version=0.0.4; charset=utf-8", text(), !head);
}

PrometheusServer::PrometheusServer(EventLoop& loop, const Endpoint& wanted, std::function<std::string()> text)
    : endpoint_(wanted),
      text_(std::move(text)),
      server_(loop, listen_or_throw(endpoint_),
              {.strangers = kMostScrapers, .patience = kPeerTime, .input = kLongestScrape},
              {.welcome = [](PeerId, int) { return ""; },
               .on_input = [this](const Peer& peer,
                                  std::string input) { return read_request(peer, std::move(input)); }}) {}

std::string PrometheusServer::read_request(const Peer& peer, std::string input) {
  if (!is_whole(input)) return input;
  server_.send(peer.id, answer_http(input, text_));
  server_.drop_when_sent(peer.id, "it has its answer");
  return "";
}

}  // namespace fleetrun::launch
