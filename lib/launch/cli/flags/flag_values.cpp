#include "launch/cli/flags/flag_values.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "base/text/printable.h"
#include "base/text/split_list.h"
#include "launch/cli/flags/shell_words.h"

namespace fleetrun::launch {
namespace {

constexpr int kMostRanks = 65536;  // more processes than a kernel starts by default (pid_max 32768)
constexpr std::array<std::string_view, 5> kLogLevels = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};
constexpr int kMostSeconds = 10'000'000;  // far from the clock's own limit

constexpr int kLargestExitCode = 255;    // wait(2) keeps the low byte
constexpr unsigned char kDelete = 0x7f;  // the control character after the letters

}  // namespace

Error bad_value(const std::string& source, const std::string& text, const std::string& wanted) {
  return Error(ErrorKind::usage, fmt::format("{} is \"{}\", must be {}", source, text, wanted));
}

int parse_count(const std::string& source, const std::string& text) {
  int count = 0;
  if (!parse_whole(text, count) || count < 1 || count > kMostRanks)
    throw bad_value(source, text, fmt::format("a whole number between 1 and {}", kMostRanks));
  return count;
}

int parse_restarts(const std::string& source, const std::string& text) {
  int count = 0;
  if (!parse_whole(text, count) || count < 0 || count > kMostRanks)
    throw bad_value(source, text, fmt::format("a whole number between 0 and {}", kMostRanks));
  return count;
}

std::vector<int> parse_exit_codes(const std::string& source, const std::string& text) {
  std::vector<int> codes;
  for (const std::string& item : split_list(text)) {
    int code = 0;
    if (!parse_whole(item, code) || code < 1 || code > kLargestExitCode)
      throw bad_value(source, text,
                      fmt::format("exit codes between 1 and {}, such as 3,137", kLargestExitCode));
    codes.push_back(code);
  }
  return codes;
}

std::optional<NodeRange> parse_nodes(const std::string& source, const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string least = text.substr(0, colon);
  const std::string most = colon == std::string::npos ? least : text.substr(colon + 1);
  NodeRange nodes;
  if (!parse_whole(least, nodes.least) || !parse_whole(most, nodes.most) || nodes.least < 1 ||
      nodes.most < nodes.least || nodes.most > kMostRanks)
    throw bad_value(source, text,
                    fmt::format("a whole number between 1 and {0}, or MIN:MAX such as 2:4", kMostRanks));
  return nodes;
}

std::optional<int> parse_node_rank(const std::string& source, const std::string& text) {
  int rank = 0;
  if (!parse_whole(text, rank) || rank < -1 || rank >= kMostRanks)
    throw bad_value(source, text, fmt::format("a whole number between 0 and {}", kMostRanks - 1));
  return rank < 0 ? std::nullopt : std::optional(rank);
}

int parse_rank(const std::string& source, const std::string& text) {
  int rank = 0;
  if (!parse_whole(text, rank) || rank < 0 || rank >= kMostRanks)
    throw bad_value(source, text, "the number of a rank, such as 0");
  return rank;
}

std::uint16_t parse_port(const std::string& source, const std::string& text) {
  std::uint16_t port = 0;
  if (!parse_whole(text, port) || port == 0) throw bad_value(source, text, "a port between 1 and 65535");
  return port;
}

std::string parse_host(const std::string&, const std::string& text) { return plain_host(text); }

std::string parse_hosts(const std::string&, const std::string& text) {
  if (!is_ipv6(text)) return text;
  std::vector<std::string> hosts = split_list(text);
  for (std::string& host : hosts) host = plain_host(host);
  return fmt::format("{}", fmt::join(hosts, ","));
}

std::string parse_hosts_without_ports(const std::string& source, const std::string& text) {
  std::vector<std::string> hosts = split_list(text);
  for (std::string& host : hosts) {
    if (split_host_and_port(host).port)
      throw bad_value(source, text, "hosts without ports, such as 10.0.0.2,10.0.0.3");
    host = plain_host(host);
  }
  return fmt::format("{}", fmt::join(hosts, ","));
}

// Without an address only this host may ask.
Endpoint parse_metrics_port(const std::string& source, const std::string& text) {
  const bool is_port = text.find(':') == std::string::npos;
  const HostAndPort parts = is_port ? HostAndPort{"127.0.0.1", text} : split_host_and_port(text);
  Endpoint endpoint = {parts.host};
  if (!parse_whole(parts.port.value_or(""), endpoint.port) || endpoint.host.empty())
    throw bad_value(source, text, "a port, 0 for any that is free, or ADDRESS:PORT");
  return endpoint;
}

Clock::duration parse_seconds(const std::string& source, const std::string& text) {
  double seconds = 0;
  if (!parse_whole(text, seconds) || !(seconds >= 0))
    throw bad_value(source, text, "a number of seconds, 0 or more");
  if (seconds > kMostSeconds)
    throw bad_value(source, text, fmt::format("at most {} seconds, which are four months", kMostSeconds));
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::optional<Clock::duration> parse_deadline(const std::string& source, const std::string& text) {
  const Clock::duration time = parse_seconds(source, text);
  return time == Clock::duration::zero() ? std::nullopt : std::optional(time);
}

DebugRank parse_debug_rank(const std::string& source, const std::string& text) {
  const auto equals = std::min(text.find('='), text.size());
  DebugRank debug;
  if (equals == text.size() || !parse_whole(text.substr(0, equals), debug.rank) || debug.rank < 0)
    throw bad_value(source, text, "a rank and a command, like 3='gdb --args'");
  debug.wrapper = split_words(source, text.substr(equals + 1));
  if (debug.wrapper.empty()) throw bad_value(source, text, "a rank and a command, like 3='gdb --args'");
  return debug;
}

std::string parse_nccl_setting(const std::string& source, const std::string& text) {
  const auto equals = std::min(text.find('='), text.size());
  const std::string name = text.substr(0, equals);
  const bool good = std::all_of(name.begin(), name.end(), [](unsigned char letter) {
    return std::isupper(letter) != 0 || std::isdigit(letter) != 0 || letter == '_';
  });
  if (equals == text.size() || !good || !name.starts_with("NCCL_"))
    throw bad_value(source, text, "a variable of NCCL and its value, like NCCL_DEBUG=INFO");
  return text;
}

std::string parse_name(const std::string& source, const std::string& text) {
  const bool good = std::none_of(text.begin(), text.end(),
                                 [](unsigned char letter) { return letter < ' ' || letter == kDelete; });
  if (!good)
    throw bad_value(source, printable(text), "a name without line breaks or other control characters");
  return text;
}

bool parse_switch(const std::string& source, const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  throw bad_value(source, text, "true or false");
}

bool parse_python_bool(const std::string& source, const std::string& text) {
  std::string lower;
  for (const char letter : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  constexpr std::array kTrue = {"y", "yes", "t", "true", "on", "1"};
  constexpr std::array kFalse = {"n", "no", "f", "false", "off", "0"};
  if (std::find(kTrue.begin(), kTrue.end(), lower) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), lower) != kFalse.end()) return false;
  throw bad_value(source, text, "true or false");
}

std::string show_value(const std::string& value) { return value; }
std::string show_value(bool value) { return value ? "true" : "false"; }
std::string show_value(int value) { return std::to_string(value); }
std::string show_value(Clock::duration value) {
  return fmt::format("{}", std::chrono::duration<double>(value).count());
}
std::string show_value(LogLevel value) { return std::string(kLogLevels.at(static_cast<std::size_t>(value))); }
std::string show_value(const DebugRank& value) {
  return fmt::format("{}={}", value.rank, quote_words(value.wrapper));
}
std::string show_value(const std::vector<int>& values) { return fmt::format("{}", fmt::join(values, ",")); }
std::string show_value(const std::vector<std::string>& values) { return quote_words(values); }
std::string show_value(const LogRule& value) { return value.text; }
std::string show_value(const LogPrefix& value) { return value.text; }
std::string show_value(const RankSet& value) { return value.text; }
std::string show_value(const NodeRange& value) {
  return value.least == value.most ? std::to_string(value.most)
                                   : fmt::format("{}:{}", value.least, value.most);
}
std::string show_value(const Endpoint& value) { return value.describe(); }

}  // namespace fleetrun::launch
