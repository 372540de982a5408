#include "launch/plan/resolve_names.h"

#include <sys/socket.h>

#include <doctest/doctest.h>

namespace fleetrun::launch::resolve_names_test {
namespace {

// Addresses stand for themselves; a name below .invalid means nothing anywhere.
std::vector<std::string> first_addresses_of(const std::vector<std::string>& names) {
  std::vector<std::string> addresses;
  for (const NamedNode& node : resolve_all(names)) addresses.push_back(node.address);
  return addresses;
}

TEST_CASE("an address has the family that it has") {
  CHECK(resolve_name("10.0.0.1", AF_INET) == "10.0.0.1");
  CHECK(resolve_name("10.0.0.1", AF_INET6) == "");
  CHECK(resolve_name("FD00:0::1", AF_INET6) == "fd00::1");
  CHECK(resolve_name("fd00::1", AF_INET) == "");
  CHECK(resolve_name("fd00::1") == "fd00::1");
  CHECK(resolve_name("localhost") == "127.0.0.1");  // over IPv4 first
  CHECK(resolve_name("no-such-host.invalid") == "");
}

TEST_CASE("a list is of one family where it can be") {
  using Texts = std::vector<std::string>;
  CHECK(first_addresses_of({"10.0.0.1", "10.0.0.2"}) == Texts{"10.0.0.1", "10.0.0.2"});
  CHECK(first_addresses_of({"fd00::1", "fd00::2"}) == Texts{"fd00::1", "fd00::2"});
  CHECK(first_addresses_of({"10.0.0.1", "fd00::2"}) == Texts{"10.0.0.1", "fd00::2"});
  CHECK(first_addresses_of({"fd00::1", "no-such-host.invalid"}) == Texts{"fd00::1", ""});
  CHECK(resolve_all({"node7.invalid"}).front().name == "node7.invalid");
  if (resolve_name("localhost", AF_INET6) == "::1")
    CHECK(first_addresses_of({"localhost", "fd00::2"}) == Texts{"::1", "fd00::2"});
}

}  // namespace
}  // namespace fleetrun::launch::resolve_names_test
