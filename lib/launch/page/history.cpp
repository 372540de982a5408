#include "launch/page/history.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace fleetrun::launch {
namespace {

// Takes what stands before the first `separator` out of the text.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view found = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return found;
}

double number_of(std::string_view cell) {
  double value = std::numeric_limits<double>::quiet_NaN();
  std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return value;
}

}  // namespace

const std::vector<double>* History::find(std::string_view name) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const HistoryColumn& column) { return column.name == name; });
  return found == columns.end() ? nullptr : &found->values;
}

History parse_history(std::string_view text) {
  History history;
  text = text.substr(0, text.rfind('\n') + 1);
  std::string_view header = take_until(text, '\n');
  if (header.ends_with('\r')) header.remove_suffix(1);
  while (!header.empty()) history.columns.push_back({std::string(take_until(header, ',')), {}});
  if (history.find("step") == nullptr) return {};
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    for (HistoryColumn& column : history.columns) column.values.push_back(number_of(take_until(line, ',')));
  }
  return history;
}

}  // namespace fleetrun::launch
