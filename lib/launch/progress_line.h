// One line on the terminal that says how far the embedded runtime is, drawn from the ranks' progress pages.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/progress_page.h"
#include "launch/event_loop.h"
#include "launch/output_stream.h"

namespace fleetrun::launch {

// What one page said at one moment.
struct Progress {
  Phase phase = Phase::starting;
  std::uint32_t epoch = 0, epochs = 0;  // 0: not known
  std::uint64_t step = 0, steps = 0;
  double loss = 0;
  double images_per_second = 0;
};

Progress read_progress(const ProgressPage& page);

// "training  epoch 2/12  step 340/3910  loss 1.23456  1024.0 images/s": rank 0's place, everybody's speed.
// While ranks are in different phases before training, those behind are named.
std::string progress_text(const std::vector<Progress>& ranks);

class ProgressLine {
 public:
  // Draws only when stderr is a terminal. The pages outlive it.
  ProgressLine(EventLoop& loop, const std::vector<ProgressPagePtr>& pages);

  void clear();  // before anything else is written to the terminal

 private:
  void draw_again_later();
  void draw();

  EventLoop& loop_;
  const std::vector<ProgressPagePtr>& pages_;
  OutputStream terminal_;
  bool drawn_ = false;
};

}  // namespace fleetrun::launch
