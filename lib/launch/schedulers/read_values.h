// Reads the variables of schedulers. Nothing here trusts them: every number and list has a limit.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "base/system/environment.h"
#include "launch/schedulers/allocation.h"

namespace fleetrun::launch {

constexpr int kMostNodes = 65536;                // of one run
constexpr std::size_t kMostListBytes = 4 << 20;  // of a node list or node file

// The text of a node list or node file. Throws Error(usage) for what is not a file or is too long, and what read_file throws.
std::string read_node_list(const std::string& path);

std::string shortened(const std::string& text);  // printable, to be quoted in an error

Error bad_allocation(const std::string& message, const std::string& hint = "");

// The first of `names` that is set and not empty; nothing when none is.
std::optional<std::string> first_set(const Environment& environment, const std::vector<std::string>& names);

// The number in a variable, at most kMostNodes; nothing when it is not set. Throws Error(usage) for another text.
std::optional<int> number_in(const Environment& environment, const std::string& name);

// Throws Error(usage) unless `host` looks like the name or address of a host.
void check_host(const std::string& source, const std::string& host);

// One node for each different host, in order of first appearance, with the number of its appearances as slots.
std::vector<NodeSlots> count_hosts(const std::string& source, const std::vector<std::string>& hosts);

std::vector<std::string> split_at_spaces(const std::string& source, const std::string& text);

std::string list_hosts(const std::vector<NodeSlots>& nodes);  // "n1, n2, ... (16 nodes)"

}  // namespace fleetrun::launch
