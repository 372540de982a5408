#include "base/system/endpoint.h"

#include <charconv>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun {

std::string Endpoint::describe() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string without_brackets(std::string host) {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

Endpoint parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  unsigned port = 0;
  if (colon != std::string_view::npos && colon > 0) {
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + colon + 1, end, port);
    if (problem == std::errc{} && stop == end && port >= 1 && port <= 65535)
      return {without_brackets(std::string(text.substr(0, colon))), static_cast<std::uint16_t>(port)};
  }
  throw Error(ErrorKind::usage,
              fmt::format("\"{}\" is not an endpoint; wanted HOST:PORT with a port of 1 to 65535", text));
}

}  // namespace fleetrun
