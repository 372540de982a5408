#include "base/text/split_list.h"

#include <algorithm>
#include <cstddef>

namespace fleetrun {

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  std::size_t start = 0;
  while (true) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    std::string item = text.substr(start, comma - start);
    item.erase(0, item.find_first_not_of(' '));
    item.erase(item.find_last_not_of(' ') + 1);
    items.push_back(item);
    if (comma == text.size()) return items;
    start = comma + 1;
  }
}

}  // namespace fleetrun
