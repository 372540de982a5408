// The rows of a terminal that a program writes again and again by moving the cursor up: nested progress bars, such as tqdm's, and tables,
// such as rich's.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launch {

// Of a row that the program rewrites with carriage returns, removes the states before the last two. The last one may be incomplete.
void forget_old_states(std::string& row);

class RedrawnRows {
 public:
  // While rows are open, all text belongs to them.
  bool are_open() const { return !rows_.empty(); }

  // `row`: what the program has written of the row in which the cursor is, before it moves up for the first time.
  void open(std::string row);

  // Takes text off `text`, up to a line end in the last row, which closes the rows. All escape sequences in `text` are complete.
  // Returns what close() returns then, else "".
  std::string take(std::string_view& text);

  // Returns each row whose present state nobody has seen, as a line.
  std::string close();

  // The same, but the rows stay open.
  std::string show_changes();

  std::string last_state() const;  // of the lowest row that is not blank

 private:
  struct Row {
    std::string text;   // with carriage returns and escape sequences
    std::string shown;  // the last state that somebody has seen
  };

  void write(std::string_view text) { rows_[cursor_].text += text; }
  void apply(std::string_view escape);
  void move_up(std::size_t rows);

  std::vector<Row> rows_;
  std::size_t cursor_ = 0;  // the row in which it is
};

}  // namespace fleetrun::launch
