#include "launch/loop/peer_server.h"

#include <functional>
#include <future>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/system/endpoint.h"
#include "base/system/socket_address.h"
#include "launch/loop/listen_on.h"
#include "support/stranger.h"

namespace fleetrun::launch::peer_server_test {
namespace {

using namespace std::chrono_literals;
using testing::Stranger;

// Answers every line with itself. "trust" makes the peer known, "bye" is answered by the last line.
class LineServer {
 public:
  explicit LineServer(PeerLimits limits)
      : server_(
            loop_, listen_on(endpoint_, 16), limits,
            {.welcome = [this](PeerId,
                               int fd) { return welcomes ? std::optional(name_of_peer(fd)) : std::nullopt; },
             .on_input = [this](const Peer& peer,
                                std::string input) { return answer(peer.id, std::move(input)); },
             .on_drop = [this](const Peer&, const std::string& why) { dropped.push_back(why); }}) {}

  // Runs the loop while `work` runs on another thread.
  template <typename Work>
  void serve(Work work) {
    auto done = std::async(std::launch::async, [&] {
      const std::shared_ptr<void> at_end(nullptr, [&](void*) { finished_ = true; });
      work(endpoint_);
    });
    const std::function<void()> look = [&] {
      if (finished_) return loop_.stop();
      loop_.call_at(Clock::now() + 1ms, look);
    };
    look();
    loop_.run();
    done.get();
  }

  std::atomic<bool> welcomes = true;
  std::vector<std::string> dropped;  // to be read after serve()

 private:
  std::string answer(PeerId id, std::string input) {
    const auto end = input.find('\n');
    if (end == std::string::npos) return input;
    if (input.starts_with("trust")) server_.trust(id);
    server_.send(id, input.substr(0, end + 1));
    if (input.starts_with("bye")) server_.drop_when_sent(id, "it said bye");
    return input.substr(end + 1);
  }

  EventLoop loop_;
  Endpoint endpoint_ = {"127.0.0.1", 0};
  std::atomic<bool> finished_ = false;
  PeerServer server_;
};

TEST_CASE(
    "while strangers take all places the next peer waits, and gets its turn when one is trusted or gone") {
  LineServer server({.strangers = 2, .patience = 60s});
  server.serve([](const Endpoint& endpoint) {
    Stranger first(endpoint), second(endpoint), third(endpoint);
    first.say("hello\n");
    second.say("hello\n");
    CHECK(first.hear() == "hello\n");
    CHECK(second.hear() == "hello\n");
    third.say("hello\n");
    CHECK_FALSE(third.hears_within(50));
    first.say("trust\n");
    CHECK(first.hear() == "trust\n");
    CHECK(third.hear() == "hello\n");
    first.say("still here\n");
    CHECK(first.hear() == "still here\n");
  });
}

TEST_CASE("a stranger is dropped when its time is over, a trusted peer is not") {
  LineServer server({.patience = 50ms});
  server.serve([](const Endpoint& endpoint) {
    Stranger trusted(endpoint), silent(endpoint);
    trusted.say("trust\n");
    CHECK(trusted.hear() == "trust\n");
    CHECK(silent.thrown_out());
    trusted.say("hello\n");
    CHECK(trusted.hear() == "hello\n");
  });
  REQUIRE(!server.dropped.empty());
  CHECK(server.dropped.front() == "no handshake within 50 ms");
}

TEST_CASE("a peer that says too much without being understood is dropped") {
  LineServer server({.patience = 60s, .input = 10});
  server.serve([](const Endpoint& endpoint) {
    Stranger wordy(endpoint);
    wordy.say("0123456789");
    CHECK_FALSE(wordy.hears_within(20));
    wordy.say("a");
    CHECK(wordy.thrown_out());
  });
  REQUIRE(!server.dropped.empty());
  CHECK(server.dropped.front() == "it says more than 10 bytes");
}

TEST_CASE("a peer that is dropped reads its last answer, whatever else it has said") {
  LineServer server({.patience = 60s});
  server.serve([](const Endpoint& endpoint) {
    Stranger peer(endpoint);
    peer.say("bye\n" + std::string(100'000, 'x'));
    CHECK(peer.hear() == "bye\n");
    CHECK(peer.thrown_out());
  });
  REQUIRE(server.dropped.size() == 1);
  CHECK(server.dropped.front() == "it said bye");
}

TEST_CASE("who is not welcome sees its connection end, and nobody hears of it") {
  LineServer server({.patience = 60s});
  server.welcomes = false;
  server.serve([](const Endpoint& endpoint) { CHECK(Stranger(endpoint).thrown_out()); });
  CHECK(server.dropped.empty());
}

TEST_CASE("a server listens on IPv6, too, and not on what is not an address") {
  Endpoint six = {"::1", 0};
  if (const UniqueFd listener = listen_on(six, 1)) {
    CHECK(six.port != 0);
    const SocketAddress address = SocketAddress::own_end(listener.get()).value();
    const UniqueFd peer(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(peer.get(), address.data(), address.size()) == 0);
    CHECK(name_of_peer(peer.get()) == six.describe());
    CHECK(six.describe().starts_with("[::1]:"));
  }
  Endpoint none = {"nowhere", 0};
  CHECK_FALSE(listen_on(none, 1));
}

}  // namespace
}  // namespace fleetrun::launch::peer_server_test
