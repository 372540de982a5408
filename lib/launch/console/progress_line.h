// One line on the terminal that says how far the embedded runtime is.
#pragma once
#include <cstdint>
#include <functional>
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
  double loss = 0;
  double images_per_second = 0;
};

constexpr std::size_t kLongestLine = 200;  // characters of a line that stays

Progress read_progress(const ProgressPage& page);

// "training  epoch 2/12  step 340/3910  loss 1.23456  1024.0 images/s": rank 0's place, everybody's speed. Where that
// is longer than `width`, the rest of it.
// While ranks are in different phases before training, those behind are named.
std::string progress_text(const std::vector<Progress>& ranks, std::size_t width = kLongestLine);

class ProgressLine {
 public:
  // Nothing is shown when stderr is not a terminal. In the foreground of a terminal that can erase lines one line is
  // drawn again and again, elsewhere a line is added now and then. `ranks` says how far the ranks are; none: they are of another program.
  ProgressLine(EventLoop& loop, std::function<std::vector<Progress>()> ranks, const Environment& environment);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  std::optional<Clock::duration> interval() const;  // between two draws; none: nothing is shown
  void draw();
  void clear();  // before anything else is written to the terminal

 private:
  void redraw(const std::string& text);
  void add_line(const std::string& text);

  std::function<std::vector<Progress>()> ranks_;
  OutputStream terminal_;
  bool may_redraw_;
  bool drawn_ = false;
  std::string last_line_;
  TimePoint next_line_;
};

}  // namespace fleetrun::launch
