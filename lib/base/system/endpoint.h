// One address that somebody listens on, as it is written: "127.0.0.1:6170".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace fleetrun {

struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  std::string describe() const;  // "host:port", "[::1]:port"
  bool operator==(const Endpoint&) const = default;
};

std::string without_brackets(std::string host);  // "::1" of "[::1]"

// "host:port" with a port of 1..65535. Throws Error(usage) that quotes the text.
Endpoint parse_endpoint(std::string_view text);

}  // namespace fleetrun
