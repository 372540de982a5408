// One line on the terminal that says how far the embedded runtime is.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/run/progress_page.h"
#include "base/system/environment.h"
#include "launch/console/output_stream.h"
#include "launch/loop/clock.h"
#include "launch/loop/event_loop.h"

namespace fleetrun::launch {

// What one page said at one moment.
struct Progress {
  Phase phase = Phase::starting;
  std::uint32_t epoch = 0, epochs = 0;  // 0: not known
  std::uint64_t step = 0, steps = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();  // NaN: not known
  double images_per_second = 0;
};

constexpr std::size_t kLongestLine = 200;  // characters of a line that stays

Progress read_progress(const ProgressPage& page);

// How long the training will still take, judged by the steps since it began or began anew. Asked again and again.
class TimeLeft {
 public:
  std::optional<Clock::duration> look(const Progress& first,
                                      TimePoint now);  // of rank 0; none: not known yet
  void begin_anew() { start_.reset(); }  // the time before now says nothing, because the run stood still

 private:
  struct Seen {
    TimePoint time;
    std::uint64_t step = 0;
  };
  std::optional<Seen> start_;  // since when it counts
  Seen last_;                  // when the step changed last
};

// "training  epoch 2 of 0-11  step 340/3910  loss 1.23456  1024.0 images/s  ETA 3:20": rank 0's place, with epochs counted as in the lines
// of the log, and everybody's speed. Where that is longer than `width`, the rest of it.
// While ranks are in different phases before training, those behind are named.
std::string progress_text(const std::vector<Progress>& ranks, std::size_t width = kLongestLine,
                          std::optional<Clock::duration> left = std::nullopt);

// What of a line of UTF-8 fits into so many columns of a terminal. Escape sequences need none.
std::string first_columns(const std::string& line, std::size_t columns);

class ProgressLine {
 public:
  // Shows nothing if stderr is not a terminal. In the foreground of a terminal that can erase lines, it draws one line anew each time.
  // Elsewhere it adds a line from time to time. `ranks` says how far the ranks are. If it returns none, the ranks run another program, and
  // `bar` has the progress bar of this program, or "".
  ProgressLine(EventLoop& loop, std::function<std::vector<Progress>()> ranks,
               std::function<std::string()> bar, const Environment& environment);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  std::optional<Clock::duration> interval() const;  // between two draws; none: nothing is shown
  void draw();
  void begin_anew() { left_.begin_anew(); }  // the run stood still
  void clear();                              // before anything else is written to the terminal

 private:
  void redraw(const std::string& text);
  void add_line(const std::string& text);

  std::string text(std::size_t width);

  std::function<std::vector<Progress>()> ranks_;
  std::function<std::string()> bar_;
  TimeLeft left_;
  OutputStream terminal_;
  bool may_redraw_;
  bool drawn_ = false;
  std::string last_line_;
  TimePoint next_line_;
};

}  // namespace fleetrun::launch
