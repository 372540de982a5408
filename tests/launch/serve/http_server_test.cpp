#include "launch/serve/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/serve/prometheus_exporter.h"

namespace fleetrun::launch::http_server_test {
namespace {

HttpAnswer some_text(const std::string& path) {
  return metrics_answer(path, [] { return "text\n"; });
}

TEST_CASE("GET of /metrics gets the text, with its type and length") {
  CHECK(answer_http("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", some_text) ==
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 5\r\n"
        "Connection: close\r\n\r\ntext\n");
  CHECK(answer_http("GET /metrics?x=y HTTP/1.1\r\n\r\n", some_text).ends_with("\r\n\r\ntext\n"));
}

TEST_CASE("HEAD gets no text, other paths 404, other methods 405, and what is not a request 400") {
  const std::string head = answer_http("HEAD /metrics HTTP/1.1\r\n\r\n", some_text);
  CHECK(head.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(head.ends_with("Content-Length: 5\r\nConnection: close\r\n\r\n"));
  CHECK(answer_http("GET / HTTP/1.1\r\n\r\n", some_text).starts_with("HTTP/1.1 404 "));
  CHECK(answer_http("GET /metricsx HTTP/1.1\r\n\r\n", some_text).starts_with("HTTP/1.1 404 "));
  CHECK(answer_http("POST /metrics HTTP/1.1\r\n\r\n", some_text).starts_with("HTTP/1.1 405 "));
  for (const char* nonsense : {"\r\n\r\n", "GET\r\n\r\n", "GET \r\n\r\n", "GET  x\r\n\r\n"})
    CHECK(answer_http(nonsense, some_text).starts_with("HTTP/1.1 400 "));
}

TEST_CASE("hunt 26: an absolute address, as a proxy asks, gets the text, too") {
  CHECK(answer_http("GET http://node-a:9100/metrics?x=y HTTP/1.1\r\n\r\n", some_text)
            .ends_with("\r\n\r\ntext\n"));
  CHECK(answer_http("GET http://node-a:9100/other HTTP/1.1\r\n\r\n", some_text).starts_with("HTTP/1.1 404 "));
  CHECK(answer_http("GET http://node-a HTTP/1.1\r\n\r\n", some_text).starts_with("HTTP/1.1 404 "));
}

UniqueFd connect_to(const Endpoint& endpoint) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  ::inet_pton(AF_INET, endpoint.host.c_str(), &address.sin_addr);
  REQUIRE(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

std::string ask(const Endpoint& endpoint, const std::string& request) {
  const UniqueFd fd = connect_to(endpoint);
  ::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  std::array<char, 65536> buffer;
  for (ssize_t count = 0; (count = ::read(fd.get(), buffer.data(), buffer.size())) > 0;)
    answer.append(buffer.data(), static_cast<std::size_t>(count));
  return answer;
}

// Clients run on a thread of their own, and the loop until they are done.
void serve(const HttpHandler& handler, const std::function<void(const Endpoint&)>& clients) {
  EventLoop loop;
  HttpServer server(loop, {"127.0.0.1", 0}, "--metrics_port", handler);
  REQUIRE(server.endpoint().port != 0);
  std::atomic<bool> done = false;
  std::thread thread([&] {
    clients(server.endpoint());
    done = true;
  });
  const std::function<void()> look = [&] {
    if (done) return loop.stop();
    loop.call_at(Clock::now() + std::chrono::milliseconds(1), look);
  };
  look();
  loop.run();
  thread.join();
}

TEST_CASE("hunt 26: a request whose lines end with a line feed alone is answered") {
  serve(some_text, [](const Endpoint& endpoint) {
    for (const char* request : {"GET /metrics HTTP/1.1\n\n", "GET /metrics HTTP/1.1\nHost: a\n\n"})
      CHECK(ask(endpoint, request).ends_with("\r\n\r\ntext\n"));
  });
}

TEST_CASE("an answer that is larger than what a socket takes at once arrives whole, to several at a time") {
  std::string large;
  large.resize(20'000'000, 'x');
  serve([&](const std::string&) { return HttpAnswer{.body = large}; },
        [&](const Endpoint& endpoint) {
          std::vector<std::thread> clients;
          clients.reserve(3);
          std::atomic<int> good = 0;
          for (int i = 0; i < 3; ++i)
            clients.emplace_back(
                [&] { good += ask(endpoint, "GET /metrics HTTP/1.1\r\n\r\n").ends_with(large); });
          for (std::thread& client : clients) client.join();
          CHECK(good == 3);
        });
}

TEST_CASE("who sends too much, half a request or nothing holds nobody up") {
  serve(some_text, [](const Endpoint& endpoint) {
    const UniqueFd silent = connect_to(endpoint);
    const UniqueFd half = connect_to(endpoint);
    ::send(half.get(), "GET /met", 8, MSG_NOSIGNAL);
    CHECK(ask(endpoint, std::string(100'000, 'x')) == "");
    { const UniqueFd gone = connect_to(endpoint); }
    CHECK(ask(endpoint, "GET /metrics HTTP/1.1\r\n\r\n").ends_with("text\n"));
  });
}

TEST_CASE("a port that is taken, and an address that is none, are errors that name them") {
  EventLoop loop;
  const HttpServer server(loop, {"127.0.0.1", 0}, "--metrics_port", some_text);
  const auto complaint = [&](const Endpoint& endpoint) -> std::string {
    try {
      const HttpServer second(loop, endpoint, "--metrics_port", some_text);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  CHECK(complaint(server.endpoint())
            .starts_with("--metrics_port: fleetrun cannot listen on " + server.endpoint().describe()));
  CHECK(complaint({"203.0.113.7", 1}).starts_with("--metrics_port: \"203.0.113.7\" is not an address"));
  CHECK(complaint({"nowhere", 1}).starts_with("--metrics_port: \"nowhere\" is not an address"));
}

TEST_CASE("an IPv6 address needs brackets: without them nobody knows where its port begins") {
  CHECK(parse_metrics_port("--metrics_port", "[::1]:9100") == Endpoint{"::1", 9100});
  CHECK_THROWS_AS(parse_metrics_port("--metrics_port", "::1:9100"), Error);
}

}  // namespace
}  // namespace fleetrun::launch::http_server_test
