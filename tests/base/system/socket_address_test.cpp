#include "base/system/socket_address.h"

#include <sys/un.h>

#include <cerrno>

#include <doctest/doctest.h>

#include "base/system/unique_fd.h"
#include "support/leave_out.h"

namespace fleetrun::socket_address_test {
namespace {

TEST_CASE("an endpoint goes to the kernel's form and back, in both families") {
  const auto four = SocketAddress::from(Endpoint{"10.0.0.1", 6170});
  REQUIRE(four);
  CHECK(four->family() == AF_INET);
  CHECK(four->size() == sizeof(sockaddr_in));
  CHECK(four->endpoint() == Endpoint{"10.0.0.1", 6170});
  const auto six = SocketAddress::from(Endpoint{"fd00::1", 6170});
  REQUIRE(six);
  CHECK(six->family() == AF_INET6);
  CHECK(six->size() == sizeof(sockaddr_in6));
  CHECK(six->endpoint() == Endpoint{"fd00::1", 6170});
}

TEST_CASE("names are no addresses, and neither are those of other families") {
  for (const char* name : {"localhost", "", "10.0.0", "fd00::1::2", "[fd00::1]"})
    CHECK_FALSE(SocketAddress::from(Endpoint{name, 1}));
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  CHECK_FALSE(SocketAddress::from(reinterpret_cast<const sockaddr&>(local)));
}

TEST_CASE("any address of a family is that of zeros") {
  CHECK(SocketAddress::any(AF_INET, 80).endpoint() == Endpoint{"0.0.0.0", 80});
  CHECK(SocketAddress::any(AF_INET6, 80).endpoint() == Endpoint{"::", 80});
}

TEST_CASE("link-local addresses of IPv6 are told apart") {
  CHECK(SocketAddress::from(Endpoint{"fe80::1", 0})->is_link_local());
  CHECK(SocketAddress::from(Endpoint{"febf::1", 0})->is_link_local());
  for (const char* host : {"fd00::1", "::1", "10.0.0.1"})
    CHECK_FALSE(SocketAddress::from(Endpoint{host, 0})->is_link_local());
}

TEST_CASE("this host knows which addresses are its own") {
  CHECK(SocketAddress::from(Endpoint{"127.0.0.1", 0})->is_of_this_host());
  for (const char* host : {"192.0.2.1", "2001:db8::1"})  // of documents (RFC 5737, RFC 3849)
    CHECK_FALSE(SocketAddress::from(Endpoint{host, 0})->is_of_this_host());
}

TEST_CASE("a connection has two ends, and what is no connection has none") {
  for (const char* host : {"127.0.0.1", "::1"}) {
    CAPTURE(host);
    const SocketAddress wanted = SocketAddress::from(Endpoint{host, 0}).value();
    const UniqueFd listener(::socket(wanted.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listener.get(), wanted.data(), wanted.size()) != 0)
      LEAVE_OUT("this machine has no " + std::string(host));
    REQUIRE(::listen(listener.get(), 1) == 0);
    const SocketAddress server = SocketAddress::own_end(listener.get()).value();
    CHECK(server.endpoint().host == host);
    CHECK(server.endpoint().port != 0);
    CHECK_FALSE(SocketAddress::end_of_peer(listener.get()));
    CHECK(errno == ENOTCONN);
    CHECK(SocketAddress::own_address(listener.get()) == host);
    const UniqueFd client(::socket(wanted.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(client.get(), server.data(), server.size()) == 0);
    CHECK(SocketAddress::end_of_peer(client.get())->endpoint() == server.endpoint());
    CHECK(SocketAddress::own_address(client.get()) == host);
  }
  CHECK_FALSE(SocketAddress::own_end(0 - 1));
}

}  // namespace
}  // namespace fleetrun::socket_address_test
