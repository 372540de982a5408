#include "launch/schedulers/topology.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "launch/schedulers/read_values.h"
#include "launch/schedulers/slurm_lists.h"

namespace fleetrun::launch {
namespace {

constexpr const char* kWantedLine = "wanted SwitchName=NAME with Nodes=LIST or Switches=LIST";

std::string lower_case(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

Error bad_line(const std::string& source, const std::string& what) {
  return bad_allocation(fmt::format("{} {}, {}", source, what, kWantedLine));
}

void read_word(const std::string& source, const std::string& word, Switch& one) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) throw bad_line(source, fmt::format("has \"{}\"", shortened(word)));
  const std::string key = lower_case(word.substr(0, equals)), value = word.substr(equals + 1);
  if (key == "switchname")
    one.name = value;
  else if (key == "nodes")
    one.nodes = expand_hosts(source, value);
  else if (key == "switches")
    one.switches = expand_hosts(source, value);
  else if (key != "linkspeed")
    throw bad_line(source, fmt::format("has \"{}\"", shortened(word)));
}

Switch parse_switch_line(const std::string& source, const std::string& line) {
  std::istringstream words(line);
  Switch one;
  for (std::string word; words >> word;) read_word(source, word, one);
  if (one.name.empty()) throw bad_line(source, "names no switch");
  if (one.nodes.empty() && one.switches.empty())
    throw bad_line(source, fmt::format("says nothing about switch {}", one.name));
  return one;
}

std::string without_domain(const std::string& host) {
  const std::size_t dot = host.find('.');
  const bool is_address =
      host.find(':') != std::string::npos || host.find_first_not_of("0123456789.") == std::string::npos;
  return is_address ? host : host.substr(0, dot);
}

std::vector<std::string> start_of(const std::vector<std::string>& path, std::size_t length) {
  return {path.begin(), path.begin() + static_cast<std::ptrdiff_t>(length)};
}

// Which switch is above which, and above which host. A host or switch with several of them counts with the first one.
class Tree {
 public:
  explicit Tree(const std::vector<Switch>& switches) : most_(switches.size()) {
    for (const Switch& one : switches) {
      for (const std::string& below : one.switches) above_switch_.try_emplace(below, one.name);
      for (const std::string& host : one.nodes) {
        above_host_.try_emplace(host, one.name);
        above_host_.try_emplace(without_domain(host), one.name);
      }
    }
  }

  // From the top down to the host's own switch; empty: the host has none.
  std::vector<std::string> path_to(const std::string& host) const {
    std::vector<std::string> path;
    auto next = find(above_host_, host);
    if (!next) next = find(above_host_, without_domain(host));
    for (; next; next = find(above_switch_, *next)) {
      path.push_back(*next);
      if (path.size() > most_)
        throw bad_allocation(fmt::format("the file of --topology has switch {} below itself", *next));
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  using Above = std::map<std::string, std::string>;

  static std::optional<std::string> find(const Above& above, const std::string& name) {
    const auto found = above.find(name);
    return found == above.end() ? std::nullopt : std::optional(found->second);
  }

  std::size_t most_;
  Above above_switch_, above_host_;
};

}  // namespace

std::vector<Switch> parse_topology(const std::string& path, const std::string& text) {
  std::vector<Switch> switches;
  std::map<std::string, int> lines_of;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.erase(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string source = fmt::format("line {} of {}", number, path);
    switches.push_back(parse_switch_line(source, line));
    const auto [before, is_new] = lines_of.try_emplace(switches.back().name, number);
    if (!is_new)
      throw bad_allocation(
          fmt::format("{} describes switch {} again, after line {}", source, before->first, before->second));
  }
  if (switches.empty()) throw bad_allocation(fmt::format("{} describes no switch, {}", path, kWantedLine));
  return switches;
}

std::vector<std::size_t> order_by_switch(const std::vector<std::string>& hosts,
                                         const std::vector<Switch>& switches) {
  const Tree tree(switches);
  std::map<std::vector<std::string>, std::size_t> first_below;  // switches from the top: the first host there
  std::vector<std::vector<std::size_t>> keys;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const std::vector<std::string> path = tree.path_to(hosts[host]);
    std::vector<std::size_t> key;
    for (std::size_t length = std::min<std::size_t>(1, path.size()); length <= path.size(); ++length)
      key.push_back(first_below.try_emplace(start_of(path, length), host).first->second);
    key.push_back(host);
    keys.push_back(key);
  }
  std::vector<std::size_t> order(hosts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  return order;
}

std::vector<std::string> without_switch(const std::vector<std::string>& hosts,
                                        const std::vector<Switch>& switches) {
  const Tree tree(switches);
  std::vector<std::string> found;
  for (const std::string& host : hosts)
    if (tree.path_to(host).empty()) found.push_back(host);
  return found;
}

bool is_same_host(const std::string& one, const std::string& other) {
  if (one == other) return true;
  const bool both_have = without_domain(one) != one && without_domain(other) != other;
  return !both_have && without_domain(one) == without_domain(other);
}

}  // namespace fleetrun::launch
