#include "launch/logs/redrawn_rows.h"

#include <algorithm>
#include <utility>

#include "launch/logs/escapes.h"
#include "launch/logs/log_text.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kMostRows = 100;     // more than a terminal has
constexpr std::size_t kLongestRow = 8192;  // bytes; a longer one is no row of a terminal
constexpr std::string_view kEraseLine = "\x1b[2K";

bool is_blank(const std::string& state) { return state.find_first_not_of(" \t") == std::string::npos; }

}  // namespace

void forget_old_states(std::string& row) {
  std::size_t end = row.rfind('\r');
  if (end == std::string::npos) return;
  while (end > 0 && row[end - 1] == '\r') --end;
  const std::size_t before = end == 0 ? std::string::npos : row.rfind('\r', end - 1);
  if (before != std::string::npos) row.erase(0, before + 1);
}

void RedrawnRows::open(std::string row) {
  rows_ = {{.text = std::move(row), .shown = {}}};
  cursor_ = 0;
}

std::string RedrawnRows::take(std::string_view& text) {
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find_first_of("\n\x1b"), text.size());
    write(text.substr(0, plain));
    text.remove_prefix(plain);
    forget_old_states(rows_[cursor_].text);
    if (rows_[cursor_].text.size() > kLongestRow) return close();
    if (text.empty()) break;
    const bool ends_row = text.front() == '\n';
    const std::size_t end = ends_row ? 1 : end_of_escape(text, 0);
    if (!ends_row) apply(text.substr(0, end));
    text.remove_prefix(end);
    if (ends_row && ++cursor_ == rows_.size()) return close();
  }
  return "";
}

void RedrawnRows::apply(std::string_view escape) {
  if (const std::size_t rows = rows_up(escape); rows > 0)
    move_up(rows);
  else if (escape == kEraseLine)
    rows_[cursor_].text.clear();
  else
    write(escape);
}

// Rows above the first one were shown as lines before, and are blank here until the program writes them anew.
void RedrawnRows::move_up(std::size_t rows) {
  const std::size_t above = std::min(rows, cursor_);
  cursor_ -= above;
  const std::size_t added = std::min(rows - above, kMostRows - std::min(kMostRows, rows_.size()));
  rows_.insert(rows_.begin(), added, Row());
}

std::string RedrawnRows::show_changes() {
  std::string lines;
  for (Row& row : rows_) {
    std::string state = clean_line(row.text);
    if (is_blank(state) || state == row.shown) continue;
    lines.append(state).append("\n");
    row.shown = std::move(state);
  }
  return lines;
}

std::string RedrawnRows::close() {
  std::string lines = show_changes();
  rows_.clear();
  return lines;
}

std::string RedrawnRows::last_state() const {
  for (auto row = rows_.rbegin(); row != rows_.rend(); ++row)
    if (std::string state = clean_line(row->text); !is_blank(state)) return state;
  return "";
}

}  // namespace fleetrun::launch
