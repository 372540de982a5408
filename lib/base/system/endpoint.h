// A host and a port, written as "127.0.0.1:6170" or "[fd00::1]:6170".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fleetrun {

struct Endpoint {
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;

  std::string describe() const;  // "host:port", with brackets around an IPv6 address
  bool operator==(const Endpoint&) const = default;
};

// "host:port" with a port of 1..65535. Throws Error(usage) that quotes the text.
Endpoint parse_endpoint(std::string_view text);

// The parts of "host", "host:port", "[fd00::1]" and "[fd00::1]:port". An IPv6 address without brackets has no port.
struct HostAndPort {
  std::string host;  // as plain_host() writes it
  std::optional<std::string> port;
};
HostAndPort split_host_and_port(std::string_view text);

// Without brackets, and an IPv6 address in the spelling of the kernel: "[FD00:0::1]" is "fd00::1". Names stay as they
// are.
std::string plain_host(std::string_view text);

bool is_ipv6(std::string_view host);             // of a plain host
std::string bracketed(const std::string& host);  // as URLs have it: "[fd00::1]", "10.0.0.1"

bool is_loopback(const std::string& address);  // numeric: "127.0.0.2", "::1"

}  // namespace fleetrun
