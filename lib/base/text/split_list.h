// Lists as they are typed: "0,1, 2".
#pragma once
#include <string>
#include <vector>

namespace fleetrun {

// The items between commas, without the spaces around them. An empty text has one item, which is empty.
std::vector<std::string> split_list(const std::string& text);

}  // namespace fleetrun
