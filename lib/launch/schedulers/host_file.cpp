// Sources of the syntax: docs.open-mpi.org, "Scheduling processes across hosts"; horovod/horovod, docs/running.rst; MPICH's wiki,
// "Using the Hydra process manager".
#include "launch/schedulers/host_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/system/endpoint.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/schedulers/read_values.h"

namespace fleetrun::launch {
namespace {

int parse_slots(const std::string& source, const std::string& text) {
  int slots = 0;
  if (!parse_whole(text, slots) || slots < 1 || slots > kMostNodes)
    throw bad_allocation(fmt::format("{} has \"{}\" as the number of slots, must be between 1 and {}", source,
                                     shortened(text), kMostNodes));
  return slots;
}

const std::set<std::string> kSlots = {"slots", "cpu", "cpus", "count"};
const std::set<std::string> kMostSlots = {"max_slots", "max-slots", "slots_max", "slots-max"};
// How to reach a host or bind its processes: nothing here depends on it.
const std::set<std::string> kOtherSettings = {"user",   "username", "user_name", "user-name",
                                              "port",   "rack",     "binding",   "map",
                                              "ifname", "boards",   "sockets"};

// "a slots = 4" -> "a slots=4"
std::string without_blanks_at_equals(const std::string& line) {
  std::string text;
  for (const char letter : line) {
    if (letter == '=') text.erase(text.find_last_not_of(" \t") + 1);
    if (!text.empty() && text.back() == '=' && (letter == ' ' || letter == '\t')) continue;
    text += letter;
  }
  return text;
}

// A word such as "slots=4" after the host.
void read_setting(const std::string& source, const std::string& word, NodeSlots& node,
                  std::optional<int>& most) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  if (equals != std::string::npos && kSlots.contains(name)) {
    node.slots = parse_slots(source, word.substr(equals + 1));
  } else if (equals != std::string::npos && kMostSlots.contains(name)) {
    most = parse_slots(source, word.substr(equals + 1));
  } else if (equals == std::string::npos || !kOtherSettings.contains(name)) {
    throw bad_allocation(
        fmt::format("{} has \"{}\" after the host, wanted slots=N or max_slots=N", source, shortened(word)));
  }
}

NodeSlots parse_line(const std::string& source, const std::string& line) {
  std::istringstream words(without_blanks_at_equals(line));
  std::string word;
  words >> word;
  const HostAndPort parts = split_host_and_port(word);
  NodeSlots node = {parts.host, std::nullopt};
  check_host(source, node.host);
  if (parts.port) node.slots = parse_slots(source, *parts.port);
  std::optional<int> limit;
  while (words >> word) read_setting(source, word, node, limit);
  if (!node.slots) node.slots = limit;  // as Open MPI has it
  return node;
}

void add_node(const NodeSlots& node, std::map<std::string, std::size_t>& places,
              std::vector<NodeSlots>& nodes) {
  const auto [place, is_new] = places.try_emplace(node.host, nodes.size());
  if (is_new) return nodes.push_back(node);
  NodeSlots& known = nodes[place->second];
  known.slots = known.slots.value_or(1) + node.slots.value_or(1);
}

}  // namespace

std::vector<NodeSlots> parse_host_file(const std::string& path, const std::string& text) {
  std::vector<NodeSlots> nodes;
  std::map<std::string, std::size_t> places;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.erase(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    add_node(parse_line(fmt::format("line {} of {}", number, path), line), places, nodes);
    if (nodes.size() > kMostNodes)
      throw bad_allocation(fmt::format("{} lists more than {} nodes", path, kMostNodes));
  }
  if (nodes.empty()) throw bad_allocation(fmt::format("{} lists no hosts", path));
  return nodes;
}

}  // namespace fleetrun::launch
