#include "launch/nodes/try_to_connect.h"

#include <sys/socket.h>

#include <doctest/doctest.h>

#include "launch/loop/listen_on.h"

namespace fleetrun::launch::try_to_connect_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a connection to an open port succeeds, and one to a closed port is refused") {
  Endpoint open = {"127.0.0.1", 0}, closed = {"127.0.0.1", 0};
  const UniqueFd listener = listen_on(open, SOMAXCONN);
  listen_on(closed, SOMAXCONN);
  CHECK(try_to_connect({open, closed, {"", 0}, {"nowhere", 1}}, 5s) ==
        std::vector<std::string>{"", "Connection refused (errno 111)", "",
                                 "found \"nowhere:1\", wanted an address and a port"});
}

}  // namespace
}  // namespace fleetrun::launch::try_to_connect_test
