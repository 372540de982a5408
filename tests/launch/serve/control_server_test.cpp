#include "launch/serve/control_server.h"

#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "launch/logs/control_address.h"
#include "launch/serve/control_client.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::control_server_test {
namespace {

using namespace std::chrono_literals;

// What `work` gets from a server that answers every request with itself, `times` times over.
template <typename Work>
auto with_server(const TemporaryFolder& folder, std::size_t times, Work work) {
  EventLoop loop;
  const LogFolder logs(folder.path());
  ControlServer server(loop, logs, [times](const std::string& request, const std::string&) {
    std::string answer;
    for (std::size_t i = 0; i < times; ++i) answer += request;
    return answer;
  });
  REQUIRE(server.listens());
  std::atomic<bool> done = false;
  auto result = std::async(std::launch::async, [&] {
    const std::shared_ptr<void> at_end(nullptr, [&](void*) { done = true; });  // also when it throws
    return work();
  });
  const std::function<void()> look = [&] {
    if (done) return loop.stop();
    loop.call_at(Clock::now() + 10ms, look);
  };
  look();
  loop.run();
  server.close();
  return result.get();
}

std::string ask(const TemporaryFolder& folder, const std::string& request) {
  ControlClient client(folder.path());
  return client.ask(request);
}

TEST_CASE("an answer of any length arrives whole") {
  const TemporaryFolder folder;
  CHECK(with_server(folder, 1, [&] { return ask(folder, "hello"); }) == "hello");
  const std::string text(1000, 'x');
  CHECK(with_server(folder, 5000, [&] { return ask(folder, text); }).size() == 5'000'000);
}

TEST_CASE("a request that is too long is told so") {
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

TEST_CASE("many peers who say nothing keep nobody else out for ever") {
  const TemporaryFolder folder;
  CHECK(with_server(folder, 1, [&] {
          std::vector<std::unique_ptr<UniqueFd>> silent;
          const UniqueFd opened = open_control_folder(folder.path());
          const sockaddr_un address = address_in(opened);
          for (int i = 0; i < 60; ++i) {
            silent.push_back(
                std::make_unique<UniqueFd>(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
            [[maybe_unused]] const int connected =
                ::connect(silent.back()->get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
          }
          return ask(folder, "hello");
        }) == "hello");
}

TEST_CASE("a folder that no run uses, or that is not there") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(ask(folder, "hello"), ("no fleetrun uses " + folder.path() + "/ now").c_str(), Error);
  ControlClient nowhere(folder / "none");
  CHECK_THROWS_AS(nowhere.ask("hello"), Error);
}

}  // namespace
}  // namespace fleetrun::launch::control_server_test
