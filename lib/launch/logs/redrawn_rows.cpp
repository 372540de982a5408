#include "launch/logs/redrawn_rows.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "launch/logs/escapes.h"
#include "launch/logs/log_text.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kMostRows = 100;     // more than a terminal has
constexpr std::size_t kLongestRow = 8192;  // bytes; longer text is not a row of a terminal
constexpr std::string_view kEraseLine = "\x1b[2K";

// Both spellings of the sequences that erase what follows the cursor in its row, and that and all rows below (EL, ED).
constexpr std::string_view kEraseRest = "\x1b[K", kEraseRestToo = "\x1b[0K";
constexpr std::string_view kEraseBelow = "\x1b[J", kEraseBelowToo = "\x1b[0J";

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

std::string RedrawnRows::take(std::string_view& text, TimePoint now) {
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find_first_of("\n\x1b"), text.size());
    write(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty() || are_too_long()) break;
    const bool ends_row = text.front() == '\n';
    const std::size_t end = ends_row ? 1 : end_of_escape(text, 0);
    const std::string_view control = text.substr(0, end);
    text.remove_prefix(end);
    if (!ends_row)
      apply(control, now);
    else if (cursor_ + 1 == rows_.size())
      return close();
    else
      move_down(1, now);
  }
  return "";
}

void RedrawnRows::write(std::string_view text) {
  std::string& row = rows_[cursor_].text;
  row += text;
  if (text.find('\r') != std::string_view::npos) forget_old_states(row);
}

void RedrawnRows::apply(std::string_view escape, TimePoint now) {
  std::string& row = rows_[cursor_].text;
  const bool at_start = row.empty() || row.back() == '\r';
  if (const std::size_t rows = rows_up(escape); rows > 0) {
    move_up(rows);
  } else if (const std::size_t lower = rows_down(escape); lower > 0) {
    move_down(lower, now);
  } else if (escape == kEraseLine || (at_start && (escape == kEraseRest || escape == kEraseRestToo))) {
    row.clear();
  } else if (at_start && (escape == kEraseBelow || escape == kEraseBelowToo)) {
    for (std::size_t below = cursor_; below < rows_.size(); ++below) rows_[below].text.clear();
  } else {
    row += escape;
  }
}

// What a program writes after that replaces the row, as if the cursor were at its start. A program that moves up and does not go there has
// nothing to add to the row.
void RedrawnRows::arrive() {
  std::string& row = rows_[cursor_].text;
  if (!row.empty() && row.back() != '\r') row += '\r';
}

// Rows above the first one were shown as lines before, and are blank here until the program writes them anew.
void RedrawnRows::move_up(std::size_t rows) {
  const std::size_t above = std::min(rows, cursor_);
  cursor_ -= above;
  const std::size_t added = std::min(rows - above, kMostRows - std::min(kMostRows, rows_.size()));
  rows_.insert(rows_.begin(), added, Row());
  arrive();
}

void RedrawnRows::move_down(std::size_t rows, TimePoint now) {
  const std::size_t lower = std::min(rows, rows_.size() - 1 - cursor_);
  for (std::size_t row = 0; row < lower; ++row) rows_[cursor_++].left = now;
  arrive();
}

bool RedrawnRows::are_too_long() const { return are_open() && rows_[cursor_].text.size() > kLongestRow; }

std::string RedrawnRows::take_row() { return std::exchange(rows_[cursor_].text, ""); }

std::string RedrawnRows::drop_finished(TimePoint now) {
  std::string lines;
  while (cursor_ > 0 && now >= rows_.front().left + kFinishedAfter) {
    lines += show(rows_.front());
    rows_.erase(rows_.begin());
    --cursor_;
  }
  return lines;
}

// The row as a line, if its state is new.
std::string RedrawnRows::show(Row& row) {
  std::string state = clean_line(row.text);
  if (is_blank(state) || state == row.shown) return "";
  row.shown = state;
  return state + "\n";
}

std::string RedrawnRows::show_changes() {
  std::string lines;
  for (Row& row : rows_) lines += show(row);
  return lines;
}

std::string RedrawnRows::close() {
  std::string lines = show_changes();
  rows_.clear();
  cursor_ = 0;
  return lines;
}

std::string RedrawnRows::last_state() const {
  for (auto row = rows_.rbegin(); row != rows_.rend(); ++row)
    if (std::string state = clean_line(row->text); !is_blank(state)) return state;
  return "";
}

}  // namespace fleetrun::launch
