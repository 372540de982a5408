#include "launch/serve/control_server.h"

#include <sys/socket.h>

#include <future>
#include <vector>

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "launch/logs/control_address.h"
#include "launch/serve/control_client.h"
#include "launch/serve/while_answered.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::control_server_test {
namespace {

using namespace std::chrono_literals;

const std::string kLater = "later";  // has its answer after a while

// What `work` gets from a server that answers every request with itself, `times` times over.
template <typename Work>
auto with_server(const TemporaryFolder& folder, std::size_t times, Work work, Clock::duration patience = 5s) {
  EventLoop loop;
  const auto answer = [times, &loop](const std::string& request, const std::string&,
                                     const ControlServer::Reply& reply) {
    std::string text;
    for (std::size_t i = 0; i < times; ++i) text += request;
    if (request == kLater)
      loop.call_at(Clock::now() + 50ms, [reply, text] { reply(text); });
    else
      reply(text);
  };
  return while_answered(loop, folder, answer, work, patience);
}

UniqueFd connect_to(const TemporaryFolder& folder) {
  const ControlAddress found = control_address(folder.path());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* const address = reinterpret_cast<const sockaddr*>(&found.address);
  return ::connect(fd.get(), address, sizeof found.address) == 0 ? std::move(fd) : UniqueFd();
}

// Waits for what comes first, the connection's end or a byte.
bool hears_end(const UniqueFd& fd) {
  char byte = 0;
  return ::recv(fd.get(), &byte, 1, 0) == 0;
}

std::string ask(const TemporaryFolder& folder, const std::string& request) {
  ControlClient client(folder.path());
  return client.ask(request);
}

TEST_CASE("requests go to the answerer that is there when they are read") {
  const TemporaryFolder folder;
  EventLoop loop;
  const LogFolder logs(folder.path());
  ControlServer server(loop, logs, nullptr);
  std::vector<std::string> answers;
  for (const char* answer : {"one", "two"}) {
    server.answer_with([answer](const std::string&, const std::string&, const ControlServer::Reply& reply) {
      reply(answer);
    });
    auto heard = std::async(std::launch::async, [&] { return ask(folder, "hello"); });
    while (heard.wait_for(0s) != std::future_status::ready) {
      loop.call_at(Clock::now() + 10ms, [] {});  // so that the loop returns
      loop.run_one();
    }
    answers.push_back(heard.get());
  }
  CHECK(answers == std::vector<std::string>{"one", "two"});
}

TEST_CASE("an answer of any length arrives whole") {
  const TemporaryFolder folder;
  CHECK(with_server(folder, 1, [&] { return ask(folder, "hello"); }) == "hello");
  const std::string text(1000, 'x');
  CHECK(with_server(folder, 5000, [&] { return ask(folder, text); }).size() == 5'000'000);
}

TEST_CASE("an answer may come later, and nothing else is answered before it") {
  const TemporaryFolder folder;
  const std::string answers = with_server(
      folder, 1,
      [&] {
        const UniqueFd fd = connect_to(folder);
        const std::string requests = "later\n";
        ::send(fd.get(), requests.data(), requests.size(), MSG_NOSIGNAL);
        ::send(fd.get(), "more\n", 5, MSG_NOSIGNAL);
        std::string text(64, '\0');
        text.resize(static_cast<std::size_t>(::recv(fd.get(), text.data(), text.size(), 0)));
        return text;
      },
      20ms);
  CHECK(answers == "later\n");  // although a stranger has less time than that
}

TEST_CASE("a peer that leaves before its answer comes is no harm to others") {
  const TemporaryFolder folder;
  CHECK(with_server(folder, 1, [&] {
          const UniqueFd fd = connect_to(folder);
          ::send(fd.get(), "later\n", 6, MSG_NOSIGNAL);
          {
            const UniqueFd gone = connect_to(folder);
            ::send(gone.get(), "later\n", 6, MSG_NOSIGNAL);
          }
          return ask(folder, "later");
        }) == "later");
}

TEST_CASE("a request that is too long gets an answer that says so") {
  const TemporaryFolder folder;
  const std::string answer = with_server(folder, 1, [&] { return ask(folder, std::string(70'000, 'x')); });
  CHECK(answer == R"({"error": "the request has more than 65536 bytes"})");
}

TEST_CASE("who has asked can wait for the end of the run") {
  const TemporaryFolder folder;
  CHECK_FALSE(with_server(folder, 1, [&] {
    ControlClient client(folder.path());
    client.ask("hello");
    return client.is_over_within(50ms);
  }));
}

TEST_CASE("silent peers in all places keep others waiting only until their time is over") {
  const TemporaryFolder folder;
  std::size_t connected = 0;
  bool was_dropped = false;
  const std::string answer = with_server(
      folder, 1,
      [&] {
        std::vector<UniqueFd> silent;
        for (std::size_t i = 0; i < kMostControlPeers; ++i) silent.push_back(connect_to(folder));
        for (const UniqueFd& peer : silent) connected += peer ? 1 : 0;
        const std::string words = ask(folder, "hello");
        was_dropped = hears_end(silent.front());
        return words;
      },
      100ms);
  CHECK(answer == "hello");
  CHECK(connected == kMostControlPeers);
  CHECK(was_dropped);  // its place is what we got
}

TEST_CASE("peers that wait for the end of the run take places, too") {
  const TemporaryFolder folder;
  const std::size_t refused = with_server(folder, 1, [&] {
    std::vector<ControlClient> waiting;
    for (std::size_t i = 0; i < kMostControlPeers; ++i) waiting.emplace_back(folder.path()).ask("hello");
    const UniqueFd next = connect_to(folder);
    return static_cast<std::size_t>(hears_end(next));
  });
  CHECK(refused == 1);
}

TEST_CASE("a folder that no run uses, or that is not there") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(ask(folder, "hello"), ("no fleetrun uses " + folder.path() + "/ now").c_str(), Error);
  ControlClient nowhere(folder / "none");
  CHECK_THROWS_AS(nowhere.ask("hello"), Error);
}

}  // namespace
}  // namespace fleetrun::launch::control_server_test
