#include "launch/schedulers/read_values.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/system/file.h"
#include "base/text/printable.h"
#include "launch/cli/flags/flag_values.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestHost = 253;  // of a name in the DNS, RFC 1035
constexpr std::size_t kLongestQuote = 80;
constexpr std::size_t kMostListed = 8;

bool is_host_letter(unsigned char letter) {
  return std::isalnum(letter) != 0 || letter == '.' || letter == '-' || letter == '_' || letter == ':' ||
         letter == '%';
}

}  // namespace

// read_file takes every file for one of the user's settings.
std::string read_node_list(const std::string& path) {
  try {
    return read_file(path, kMostListBytes);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config) throw;
    throw bad_allocation(error.message());
  }
}

std::string shortened(const std::string& text) { return printable_start(text, kLongestQuote); }

Error bad_allocation(const std::string& message, const std::string& hint) {
  return Error(ErrorKind::usage, message, hint);
}

std::optional<std::string> first_set(const Environment& environment, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (!environment.get_or(name, "").empty()) return name;
  return std::nullopt;
}

std::optional<int> number_in(const Environment& environment, const std::string& name) {
  const std::string text = environment.get_or(name, "");
  if (text.empty()) return std::nullopt;
  int number = 0;
  if (!parse_whole(text, number) || number < 0 || number > kMostNodes)
    throw bad_value(name, shortened(text), fmt::format("a whole number between 0 and {}", kMostNodes));
  return number;
}

void check_host(const std::string& source, const std::string& host) {
  if (host.empty()) throw bad_allocation(fmt::format("{} has an empty host name", source));
  if (host.size() > kLongestHost || host.front() == '-' ||
      !std::all_of(host.begin(), host.end(), is_host_letter))
    throw bad_allocation(fmt::format("{} has \"{}\", which is not a host name", source, shortened(host)));
}

std::vector<NodeSlots> count_hosts(const std::string& source, const std::vector<std::string>& hosts) {
  std::vector<NodeSlots> nodes;
  std::map<std::string, std::size_t> places;
  for (const std::string& host : hosts) {
    check_host(source, host);
    const auto [place, is_new] = places.try_emplace(host, nodes.size());
    if (is_new) nodes.push_back({host, 0});
    ++*nodes[place->second].slots;
    if (std::ssize(nodes) > kMostNodes)
      throw bad_allocation(fmt::format("{} lists more than {} nodes", source, kMostNodes));
  }
  return nodes;
}

std::vector<std::string> split_at_spaces(const std::string& source, const std::string& text) {
  if (text.size() > kMostListBytes)
    throw bad_allocation(fmt::format("{} is longer than {} MiB", source, kMostListBytes >> 20));
  std::istringstream words(text);
  std::vector<std::string> list;
  for (std::string word; words >> word;) list.push_back(word);
  if (list.empty()) throw bad_allocation(fmt::format("{} lists no hosts", source));
  return list;
}

std::string list_hosts(const std::vector<NodeSlots>& nodes) {
  std::vector<std::string> names;
  for (const NodeSlots& node : nodes)
    if (names.size() < kMostListed) names.push_back(node.host);
  if (nodes.size() <= kMostListed) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{}, ... ({} nodes)", fmt::join(names, ", "), nodes.size());
}

}  // namespace fleetrun::launch
