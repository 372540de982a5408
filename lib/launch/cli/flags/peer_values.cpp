#include "launch/cli/flags/peer_values.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/split_list.h"
#include "launch/cli/flags/flag_values.h"

namespace fleetrun::launch {
namespace {

constexpr std::array<std::pair<const char*, int>, 6> kSignals = {{{"SIGTERM", SIGTERM},
                                                                  {"SIGINT", SIGINT},
                                                                  {"SIGHUP", SIGHUP},
                                                                  {"SIGQUIT", SIGQUIT},
                                                                  {"SIGUSR1", SIGUSR1},
                                                                  {"SIGUSR2", SIGUSR2}}};

// The macros of torchrun's templates, and our names for them.
constexpr std::array<std::pair<const char*, const char*>, 4> kMacros = {
    {{"role_name", "role"}, {"local_rank", "local_rank"}, {"rank", "rank"}, {"hostname", "host"}}};

std::optional<int> parse_stream_set(const std::string& text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  return text[0] - '0';
}

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// The name of the macro at `at`, which follows a dollar, and the place after it; "" when there is none.
std::pair<std::string, std::size_t> macro_at(const std::string& text, std::size_t at) {
  const bool in_braces = at < text.size() && text[at] == '{';
  const std::size_t first = at + (in_braces ? 1 : 0);
  std::size_t end = first;
  while (end < text.size() && is_name_letter(text[end])) ++end;
  if (in_braces && (end == text.size() || text[end] != '}')) return {"", at};
  return {text.substr(first, end - first), end + (in_braces ? 1 : 0)};
}

}  // namespace

int StreamMap::of(int local_rank) const {
  const auto found = of_rank.find(local_rank);
  return found == of_rank.end() ? of_all : found->second;
}

bool SignalSet::contains(int number) const {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

WorkerCount parse_worker_count(const std::string& source, const std::string& text) {
  if (text == "auto") return WorkerCount(WorkerCount::Of::automatic);
  if (text == "gpu") return WorkerCount(WorkerCount::Of::gpus);
  if (text == "cpu") return WorkerCount(WorkerCount::Of::cores);
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0)
    throw bad_value(source, text, "a whole number between 1 and 65536, or auto, gpu or cpu");
  return parse_count(source, text);
}

StreamMap parse_streams(const std::string& source, const std::string& text) {
  StreamMap map{.text = text};
  if (const auto all = parse_stream_set(text)) {
    map.of_all = *all;
    return map;
  }
  for (const std::string& item : split_list(text)) {
    const std::size_t colon = std::min(item.find(':'), item.size());
    int rank = -1;
    const auto set = parse_stream_set(item.substr(std::min(colon + 1, item.size())));
    if (!set || !parse_whole(item.substr(0, colon), rank) || rank < 0)
      throw bad_value(source, text,
                      "0 (none), 1 (stdout), 2 (stderr) or 3 (both), or that by local rank as 0:1,1:2");
    map.of_rank[rank] = *set;
  }
  return map;
}

SignalSet parse_signals(const std::string& source, const std::string& text) {
  SignalSet set{.text = text, .numbers = {}};
  for (const std::string& name : split_list(text)) {
    const auto* found = std::find_if(kSignals.begin(), kSignals.end(),
                                     [&](const auto& known) { return name == known.first; });
    if (found == kSignals.end())
      throw bad_value(source, text, "a list of SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2");
    set.numbers.push_back(found->second);
  }
  return set;
}

MeetingPoint parse_meeting_point(const std::string& source, const std::string& text) {
  const HostAndPort parts = split_host_and_port(text);
  MeetingPoint point{.host = parts.host};
  const bool good_port = !parts.port || parse_whole(*parts.port, point.port);
  if (!good_port || point.host.empty()) throw bad_value(source, text, "HOST or HOST:PORT");
  return point;
}

HostList parse_host_list(const std::string& source, const std::string& text) {
  HostList list{.text = text, .hosts = {}};
  for (const std::string& item : split_list(text)) {
    const HostAndPort parts = split_host_and_port(item);
    HostSlots host{.host = parts.host, .slots = {}};
    int slots = 0;
    if (parts.port && parse_whole(*parts.port, slots)) host.slots = slots;
    if (host.host.empty() || (parts.port && host.slots.value_or(0) < 1))
      throw bad_value(source, text, "hosts with their slots, as localhost:4");
    list.hosts.push_back(std::move(host));
  }
  return list;
}

std::string parse_role(const std::string& source, const std::string& text) {
  if (text.find_first_of("{}") != std::string::npos) throw bad_value(source, text, "a name without braces");
  return text;
}

RankVariable parse_variable(const std::string& source, const std::string& text) {
  constexpr const char* kForm = "NAME, NAME=VALUE, or RANK:NAME=VALUE for one rank";
  RankVariable variable{.rank = {}, .setting = text};
  const std::size_t colon = text.find(':'), equals = text.find('=');
  if (colon < equals) {
    int rank = 0;
    if (equals == std::string::npos || !parse_whole(text.substr(0, colon), rank) || rank < 0)
      throw bad_value(source, text, kForm);
    variable = {.rank = rank, .setting = text.substr(colon + 1)};
  }
  const std::string name = variable.setting.substr(0, variable.setting.find('='));
  const bool good = !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
                    std::all_of(name.begin(), name.end(), is_name_letter);
  if (!good) throw bad_value(source, text, kForm);
  if (name.starts_with("FLEETRUN_"))
    throw Error(
        ErrorKind::usage,
        fmt::format(
            "{} sets {}, but names that begin with FLEETRUN_ are reserved: set it in fleetrun's own environment",
            source, name));
  return variable;
}

TeePrefix parse_torch_prefix(const std::string& source, const std::string& text) {
  LogPrefix prefix;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '{' || text[at] == '}')
      throw bad_value(source, text, "a text with braces only in names such as ${rank}");
    if (text[at] != '$') {
      prefix.text += text[at++];
      continue;
    }
    const auto [name, end] = macro_at(text, at + 1);
    const auto* macro = std::find_if(kMacros.begin(), kMacros.end(), [&, &wanted = name](const auto& known) {
      return wanted == known.first;
    });
    const bool is_dollar = at + 1 < text.size() && text[at + 1] == '$';
    if (!is_dollar && macro == kMacros.end())
      throw bad_value(source, text,
                      "a text with only the names ${role_name}, ${local_rank}, ${rank} and ${hostname}");
    prefix.text += is_dollar ? "$" : fmt::format("{{{}}}", macro->second);
    at = is_dollar ? at + 2 : end;
  }
  return {text, prefix};
}

std::string show_value(const WorkerCount& value) {
  switch (value.of) {
    case WorkerCount::Of::automatic:
      return "auto";
    case WorkerCount::Of::gpus:
      return "gpu";
    case WorkerCount::Of::cores:
      return "cpu";
    case WorkerCount::Of::number:
      break;
  }
  return std::to_string(value.number);
}
std::string show_value(const StreamMap& value) { return value.text; }
std::string show_value(const SignalSet& value) { return value.text; }
std::string show_value(const MeetingPoint& value) {
  return value.port == 0 ? value.host : Endpoint{value.host, value.port}.describe();
}
std::string show_value(const HostList& value) { return value.text; }
std::string show_value(const TeePrefix& value) { return value.text; }

std::string show_value(const RankVariable& value) {
  return value.rank ? fmt::format("{}:{}", *value.rank, value.setting) : value.setting;
}

}  // namespace fleetrun::launch
