// The rows of a terminal that a program writes again and again by moving the cursor up: nested progress bars, such as tqdm's, and tables,
// such as rich's.
#pragma once
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "launch/loop/clock.h"

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
  // Returns what close() returns if it closes the rows, else "".
  std::string take(std::string_view& text, TimePoint now);

  // Whether the row with the cursor is too long for a terminal. Then take() stops.
  bool are_too_long() const;
  std::string take_row();  // its text; the row is empty then

  // Returns the new state of each row, as a line. A state that was shown before does not come again.
  std::string close();

  // The same, but the rows stay open.
  std::string show_changes();

  // Returns the rows that are finished, as show_changes() does, and removes them: those above the cursor to which it has not returned for this time.
  static constexpr auto kFinishedAfter = std::chrono::seconds(1);
  std::string drop_finished(TimePoint now);

  bool have_row_above() const { return cursor_ > 0; }  // above the cursor
  std::string last_state() const;                      // of the lowest row that is not blank

 private:
  struct Row {
    std::string text;     // with carriage returns and escape sequences
    std::string shown;    // the last state that somebody has seen
    TimePoint left = {};  // when the cursor went from here, or from above, to a lower row
  };

  static std::string show(Row& row);
  void write(std::string_view text);
  void apply(std::string_view escape, TimePoint now);
  void move_up(std::size_t rows);
  void move_down(std::size_t rows, TimePoint now);
  void arrive();

  std::vector<Row> rows_;
  std::size_t cursor_ = 0;  // the row in which it is
};

}  // namespace fleetrun::launch
