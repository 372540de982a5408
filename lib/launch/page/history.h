// The table history.csv, which rank 0 of a job writes beside its logs (runtime/observe/history.h): a row for each step that it
// logs, and a row for each evaluation.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launch {

struct HistoryColumn {
  std::string name;
  std::vector<double> values;  // one per row; NaN where the cell is empty
};

struct History {
  std::vector<HistoryColumn> columns;

  bool empty() const { return columns.empty() || columns.front().values.empty(); }
  const std::vector<double>* find(std::string_view name) const;  // null: there is no such column
};

// Of a text that may still grow: the last line counts only when it is complete. A text without the column "step" gives an
// empty history; so does a cell that is not a number give NaN.
History parse_history(std::string_view text);

}  // namespace fleetrun::launch
