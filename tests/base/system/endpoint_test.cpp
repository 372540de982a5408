#include "base/system/endpoint.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::endpoint_test {
namespace {

TEST_CASE("an endpoint is read as it is described; IPv6 addresses stand in brackets") {
  for (const char* text : {"127.0.0.1:80", "host:65535", "[::1]:80", "[fe80::1%eth0]:1"})
    CHECK(parse_endpoint(text).describe() == text);
  CHECK(parse_endpoint("[::1]:80").host == "::1");
  CHECK(parse_endpoint("::1:80").describe() == "[::1]:80");
  for (const char* text : {"host", "host:0", "host:65536", ":80", "host:8x"})
    CHECK_THROWS_AS(parse_endpoint(text), Error);
}

}  // namespace
}  // namespace fleetrun::endpoint_test
