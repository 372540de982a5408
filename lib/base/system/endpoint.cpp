#include "base/system/endpoint.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/socket_address.h"

namespace fleetrun {
namespace {

std::optional<std::uint16_t> parse_port(const std::string& text) {
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, port);
  return problem == std::errc{} && stop == end && port > 0 ? std::optional(port) : std::nullopt;
}

}  // namespace

std::string Endpoint::describe() const { return bracketed(host) + ":" + std::to_string(port); }

Endpoint parse_endpoint(std::string_view text) {
  const HostAndPort parts = split_host_and_port(text);
  const auto port = parse_port(parts.port.value_or(""));
  if (!parts.host.empty() && port) return {parts.host, *port};
  const bool bare = !text.starts_with('[') && is_ipv6(parts.host);
  throw Error(ErrorKind::usage,
              fmt::format("\"{}\" is not an endpoint; wanted HOST:PORT with a port of 1 to 65535", text),
              bare ? "an IPv6 address has brackets before its port, as in [fd00::1]:6069" : "");
}

HostAndPort split_host_and_port(std::string_view text) {
  const bool in_brackets = text.starts_with('[');
  const bool bare = !in_brackets && std::count(text.begin(), text.end(), ':') > 1;
  const std::size_t end = in_brackets ? text.rfind("]:") : text.find(':');
  if (bare || end == std::string_view::npos) return {plain_host(text), {}};
  const std::size_t colon = in_brackets ? end + 1 : end;
  return {plain_host(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

std::string plain_host(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const std::string host(text);
  const auto address = is_ipv6(host) ? SocketAddress::from(Endpoint{host, 0}) : std::nullopt;
  return address ? address->endpoint().host : host;
}

bool is_ipv6(std::string_view host) { return host.find(':') != std::string_view::npos; }

std::string bracketed(const std::string& host) { return is_ipv6(host) ? "[" + host + "]" : host; }

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

}  // namespace fleetrun
