#include "base/system/endpoint.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::endpoint_test {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_endpoint(text);
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    return error.message() + (error.hint().empty() ? "" : " | " + error.hint());
  }
  return "no error";
}

TEST_CASE("endpoints are read back as they are written, an IPv6 address in brackets") {
  for (const char* text : {"10.0.0.1:6170", "node-7.example.org:1", "[fd00::1]:65535", "[::1]:80"})
    CHECK(parse_endpoint(text).describe() == text);
  CHECK(parse_endpoint("[fd00::1]:6170") == Endpoint{"fd00::1", 6170});
}

TEST_CASE("an IPv6 address has one spelling") {
  CHECK(parse_endpoint("[FD00:0:0::01]:6170") == Endpoint{"fd00::1", 6170});
  CHECK(plain_host("[fd00::1]") == "fd00::1");
  CHECK(plain_host("FD00:0::1") == "fd00::1");
  for (const char* same : {"node7", "10.0.0.1", "", "[node7", "fe80::1%eth0", "a:b"})
    CHECK(plain_host(same) == same);
}

TEST_CASE("what is not an endpoint is quoted, and brackets are asked for") {
  for (const char* bad :
       {"", ":", "host", "host:", ":1", "host:0", "host:65536", "host:1x", "[fd00::1]", "[]:1"})
    CHECK(error_of(bad) ==
          "\"" + std::string(bad) + "\" is not an endpoint; wanted HOST:PORT with a port of 1 to 65535");
  CHECK(error_of("fd00::1:6069")
            .ends_with(" | an IPv6 address has brackets before its port, as in [fd00::1]:6069"));
}

TEST_CASE("a host may come without a port, in each spelling") {
  CHECK(split_host_and_port("node7").host == "node7");
  CHECK_FALSE(split_host_and_port("node7").port);
  CHECK(split_host_and_port("node7:4").port == "4");
  CHECK(split_host_and_port("node7:").port == "");
  CHECK(split_host_and_port("fd00::1").host == "fd00::1");
  CHECK_FALSE(split_host_and_port("fd00::1").port);
  CHECK(split_host_and_port("[fd00::1]").host == "fd00::1");
  CHECK_FALSE(split_host_and_port("[fd00::1]").port);
  CHECK(split_host_and_port("[fd00::1]:4").host == "fd00::1");
  CHECK(split_host_and_port("[fd00::1]:4").port == "4");
}

TEST_CASE("only IPv6 addresses have brackets in URLs") {
  CHECK(bracketed("fd00::1") == "[fd00::1]");
  CHECK(bracketed("10.0.0.1") == "10.0.0.1");
  CHECK(bracketed("node7") == "node7");
}

}  // namespace
}  // namespace fleetrun::endpoint_test
