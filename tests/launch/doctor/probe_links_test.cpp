#include "launch/doctor/probe_links.h"

#include <doctest/doctest.h>

#include "launch/doctor/probe_server.h"

namespace fleetrun::launch::probe_links_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a link over loopback is measured, and bytes arrive") {
  const ProbeServer server("127.0.0.1", {});
  REQUIRE(server.port() != 0);
  const LinkFacts link = measure_link({"127.0.0.1", server.port()}, 20ms);
  CHECK(link.problem == "");
  CHECK(link.latency > 0);
  CHECK(link.bytes_per_s > 0);
  CHECK(link.segments > 0);
  CHECK(link.mtu > 1000);
}

TEST_CASE("the measurement of a link to a closed port says that the connection was refused") {
  std::uint16_t closed = 0;
  { closed = ProbeServer("127.0.0.1", {}).port(); }
  CHECK(measure_link({"127.0.0.1", closed}, 20ms).problem == "Connection refused (errno 111)");
}

TEST_CASE("the server takes the first of its ports that is free") {
  const ProbeServer first("127.0.0.1", {});
  std::uint16_t free = 0;
  { free = ProbeServer("127.0.0.1", {}).port(); }
  CHECK(ProbeServer("127.0.0.1", {first.port(), free}).port() == free);
}

}  // namespace
}  // namespace fleetrun::launch::probe_links_test
