// Which of a log's bytes people see, and how: whole lines; of progress bars that rewrite their line or the lines above, the last state, and
// while they run one state a second; no escape sequences; other control characters as '?'. All other bytes stay.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "launch/logs/redrawn_rows.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

class LogText {
 public:
  // `prefix` is asked for each piece of text and stands in front of each of its lines; only lines for which `wanted`
  // is true are shown. Both may be empty. With a prefix, "" too, a line longer than 8 KiB is broken into several, since
  // another log's lines may come between its parts.
  explicit LogText(std::function<std::string()> prefix = {},
                   std::function<bool(const std::string& line)> wanted = {});

  // From now on take() returns nothing of a progress bar before its line ends: bar() has its present state, with the prefix; "" when the log
  // does not end with a bar.
  void keep_bar() { keeps_bar_ = true; }
  std::string bar() const;

  std::string take(std::string_view bytes, TimePoint now);  // what can be shown by now
  // Whether take() will show more a second later, also without more bytes: a line above the cursor, which may not go there any more.
  bool waits() const { return rows_.are_open() && rows_.have_row_above(); }
  std::string end_line();  // what was written of a line that gets no other end
  std::string finish();    // the rest: a line without an end gets one if it has a prefix

 private:
  std::string show(std::string_view lines) const;
  void take_lines(std::string_view& bytes, std::string& text);
  void show_progress(TimePoint now, std::string& text);
  std::string show_part();
  std::string show_rest(const char* end);
  std::string show_unfinished(const char* end);

  std::function<std::string()> prefix_;
  std::function<bool(const std::string& line)> wanted_;
  std::string unfinished_;  // the start of a line whose end was not written yet
  std::string partial_;     // the start of an escape sequence, which follows unfinished_
  RedrawnRows rows_;        // hold the text while they are open, and unfinished_ is empty then
  bool broken_ = false;     // what came last was a part of a line, and we ended it
  TimePoint shown_progress_{};
  bool keeps_bar_ = false;
};

// A line as LogText shows it, without its end.
std::string clean_line(std::string_view line);

}  // namespace fleetrun::launch
