#include "comm/rendezvous/store_client.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "support/run_world.h"
#include "support/store_thread.h"
#include "support/stranger.h"

namespace fleetrun::comm::store_client_test {
namespace {

using namespace std::chrono_literals;
using testing::StoreThread;

launch::StoreServerOptions options_with(const RunKey& key) {
  return {.key = key, .run_id = "run-1", .attempt = 4, .world_size = 3};
}

store_protocol::Identity rank_id(std::uint32_t rank) { return {"run-1", 4, rank, 3}; }

// What making a client, or using it, ends with.
template <typename Work>
Error error_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  throw std::runtime_error("nothing was thrown");
}

TEST_CASE("what one rank sets the others get, before and after") {
  const RunKey key = make_run_key();
  StoreThread store(options_with(key));
  testing::run_ranks(3, [&](int rank) {
    StoreClient client(store.endpoint(), key, rank_id(static_cast<std::uint32_t>(rank)), Deadline(10s));
    const int next = (rank + 1) % 3;
    client.set("from " + std::to_string(rank), std::string(1000, static_cast<char>('a' + rank)));
    if (client.get("from " + std::to_string(next), Deadline(10s)) !=
        std::string(1000, static_cast<char>('a' + next)))
      throw std::runtime_error("a wrong value");
  });
  CHECK(store.missing_ranks().empty());
  CHECK(store.dropped() == 0);
}

TEST_CASE("a large value and any bytes arrive whole") {
  const RunKey key = make_run_key();
  StoreThread store(options_with(key));
  StoreClient client(store.endpoint(), key, rank_id(0), Deadline(10s));
  std::string value(1000 << 10, '\0');
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 7);
  client.set("large", value);
  CHECK(client.get("large", Deadline(10s)) == value);
  CHECK(client.look("large") == value);
  CHECK(client.look("other") == std::nullopt);
  CHECK(client.local_address() == "127.0.0.1");
}

TEST_CASE("a get that nobody answers names the key and the store, and the next one is not confused") {
  const RunKey key = make_run_key();
  StoreThread store(options_with(key));
  StoreClient client(store.endpoint(), key, rank_id(0), Deadline(10s));
  const Error error = error_of([&] { client.get("never", Deadline(20ms)); });
  CHECK(error.kind() == ErrorKind::temporary);
  CHECK(error.message() ==
        "rank 0 waited 0.02 s for \"never\" in the store at " + store.endpoint().describe());
  client.set("never", "late");
  client.set("key", "value");
  CHECK(client.get("key", Deadline(10s)) == "value");
}

TEST_CASE("with another key neither side believes the other") {
  StoreThread store(options_with(make_run_key()));
  const Error error =
      error_of([&] { StoreClient(store.endpoint(), make_run_key(), rank_id(0), Deadline(10s)); });
  CHECK(error.kind() == ErrorKind::protocol);
  CHECK(error.message() == store.endpoint().describe() + " does not hold the key of our run");
}

TEST_CASE("a rank of another attempt ends with the protocol's code and both numbers") {
  const RunKey key = make_run_key();
  StoreThread store(options_with(key));
  store_protocol::Identity identity = rank_id(1);
  identity.attempt = 3;
  const Error error = error_of([&] { StoreClient(store.endpoint(), key, identity, Deadline(10s)); });
  CHECK(error.exit_code() == 76);
  CHECK(error.message() == "the store at " + store.endpoint().describe() +
                               " refused rank 1: rank 1 belongs to attempt 3, this is attempt 4");
}

TEST_CASE("a second rank of the same number is refused") {
  const RunKey key = make_run_key();
  StoreThread store(options_with(key));
  StoreClient first(store.endpoint(), key, rank_id(1), Deadline(10s));
  const Error error = error_of([&] { StoreClient(store.endpoint(), key, rank_id(1), Deadline(10s)); });
  CHECK(error.kind() == ErrorKind::protocol);
}

TEST_CASE("a store that is not there is tried until the deadline, and named") {
  Endpoint nowhere;
  {
    StoreThread store(options_with(make_run_key()));
    nowhere = store.endpoint();
  }
  const Error error = error_of([&] { StoreClient(nowhere, make_run_key(), rank_id(2), Deadline(150ms)); });
  CHECK(error.exit_code() == 75);
  CHECK(error.message() ==
        nowhere.describe() + ": no connection after 0.15 s: Connection refused (errno 111)");
  CHECK(error.describe("x").find("while rank 2 connects to the store") != std::string::npos);
}

TEST_CASE("a lost launcher is a temporary error of whoever waits") {
  const RunKey key = make_run_key();
  StoreThread store(options_with(key));
  StoreClient client(store.endpoint(), key, rank_id(0), Deadline(10s));
  store.on_loop([](launch::StoreServer& server) { server.close(); });
  const Error error = error_of([&] { client.get("key", Deadline(10s)); });
  CHECK(error.exit_code() == 75);
  CHECK(error.message().find(store.endpoint().describe()) != std::string::npos);
}

// Something else listens on the port and answers with its own bytes.
class Impostor {
 public:
  explicit Impostor(std::string answer) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener_.get(), generic, size) == 0);
    REQUIRE(::listen(listener_.get(), 1) == 0);
    REQUIRE(::getsockname(listener_.get(), generic, &size) == 0);
    endpoint_ = {"127.0.0.1", ntohs(address.sin_port)};
    thread_ = std::thread([this, answer = std::move(answer)] {
      const UniqueFd peer(::accept(listener_.get(), nullptr, nullptr));
      (void)::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      char byte = 0;
      while (::recv(peer.get(), &byte, 1, 0) > 0) {
      }
    });
  }
  ~Impostor() { thread_.join(); }
  Endpoint endpoint() const { return endpoint_; }

 private:
  UniqueFd listener_;
  Endpoint endpoint_;
  std::thread thread_;
};

TEST_CASE("what is not a store is recognised, whatever it says") {
  using namespace store_protocol;
  const auto kind_of = [](std::string answer, std::chrono::milliseconds patience = 30s) {
    Impostor impostor(std::move(answer));
    return error_of([&] { StoreClient(impostor.endpoint(), make_run_key(), rank_id(0), Deadline(patience)); })
        .kind();
  };
  CHECK(kind_of("HTTP/1.1 400 Bad Request\r\n\r\n") == ErrorKind::protocol);
  CHECK(kind_of(std::string("\x02\x00\x00\x00zz", 6)) == ErrorKind::protocol);
  CHECK(kind_of(encode(Welcome{})) == ErrorKind::protocol);
  CHECK(kind_of(encode(Challenge{})) == ErrorKind::protocol);
  CHECK(kind_of("", 200ms) == ErrorKind::temporary);  // silence
}

}  // namespace
}  // namespace fleetrun::comm::store_client_test
