// From the text of a flag or variable to its value, and back. Every error names the flag and quotes the text.
#pragma once
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "base/system/endpoint.h"
#include "job/spec/job_spec.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/cli/flags/shell_words.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

// What parsers here throw: "--max_restart is "x", must be ...".
Error bad_value(const std::string& source, const std::string& text, const std::string& wanted);

// Whether all of the text is a number.
template <typename Number>
bool parse_whole(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc{} && stop == end;
}

// All throw Error(usage); `source` is "--gpus" or "PADDLE_DEVICES".
int parse_count(const std::string& source, const std::string& text);                       // 1 .. 65536
std::optional<NodeRange> parse_nodes(const std::string& source, const std::string& text);  // 2, 2:4
std::optional<int> parse_node_rank(const std::string& source,
                                   const std::string& text);             // 0 .. 65535; -1: none
int parse_rank(const std::string& source, const std::string& text);      // 0 .. 65535
int parse_restarts(const std::string& source, const std::string& text);  // 0 .. 65536
std::vector<int> parse_exit_codes(const std::string& source, const std::string& text);  // 3,137
std::uint16_t parse_port(const std::string& source, const std::string& text);           // 1 .. 65535
std::string parse_host(const std::string& source, const std::string& text);   // 10.0.0.1, node7, [fd00::1]
std::string parse_hosts(const std::string& source, const std::string& text);  // 10.0.0.1, node7
std::string parse_hosts_without_ports(const std::string& source,
                                      const std::string& text);  // refuses node7:6069
Clock::duration parse_seconds(const std::string& source, const std::string& text);
std::optional<Clock::duration> parse_deadline(const std::string& source, const std::string& text);  // 0: none
DebugRank parse_debug_rank(const std::string& source, const std::string& text);      // 3=gdb --args
std::string parse_nccl_setting(const std::string& source, const std::string& text);  // NCCL_DEBUG=INFO
std::string parse_name(const std::string& source, const std::string& text);  // without control characters
bool parse_switch(const std::string& source, const std::string& text);       // true, false
bool parse_python_bool(const std::string& source, const std::string& text);  // True, no, 1, ...

// 9100, 0 for any port that is free, or 0.0.0.0:9100.
Endpoint parse_metrics_port(const std::string& source, const std::string& text);

// As the user would write it; "" when there is no value.
std::string show_value(const std::string& value);
std::string show_value(bool value);
std::string show_value(int value);
std::string show_value(Clock::duration value);  // in seconds
std::string show_value(LogLevel value);
std::string show_value(const DebugRank& value);
std::string show_value(const std::vector<int>& values);
std::string show_value(const std::vector<std::string>& values);
std::string show_value(const LogRule& value);
std::string show_value(const LogPrefix& value);
std::string show_value(const RankSet& value);
std::string show_value(const NodeRange& value);
std::string show_value(const Endpoint& value);
template <typename T>
std::string show_value(const std::vector<T>& values) {  // as words of a shell
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const T& value : values) texts.push_back(show_value(value));
  return quote_words(texts);
}
template <typename T>
std::string show_value(const std::optional<T>& value) {
  return value ? show_value(*value) : "";
}

}  // namespace fleetrun::launch
