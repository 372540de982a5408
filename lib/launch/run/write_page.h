// Writes log/report.html: now and then during a run, and at its end.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "launch/logs/log_folder.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/timer.h"
#include "launch/report/report.h"
#include "launch/run/run_plan.h"
#include "launch/serve/prometheus_exporter.h"

namespace fleetrun::launch {

// What the ranks have measured, as far as we know.
struct RankFigures {
  RunMetrics metrics = {};
  std::map<int, std::uint64_t> peak_kib = {};  // by rank
};

// The page of a run that is over, without a folder: of one whose process is gone.
std::string end_page(const RunPlan& plan, const ExitReport& report);

// Writes it, with what is in the folder. Throws Error(create|io).
void write_end_page(const RunPlan& plan, const LogFolder& logs, const ExitReport& report,
                    const RankFigures& figures = {});

// Draws the page of a run that goes on. It never takes more than a hundredth of this process's time.
class LivePage {
 public:
  struct Sources {  // all outlive it
    const RunPlan& plan;
    const LogFolder& logs;
    MetricsSource metrics;
  };
  LivePage(EventLoop& loop, Sources sources);
  LivePage(const LivePage&) = delete;
  LivePage& operator=(const LivePage&) = delete;

  // The run is over: writes the page that stays. Throws Error(create|io).
  void finish();

 private:
  void measure();
  void measure_again_later();
  void draw_later(Clock::duration took);
  void draw();

  const Sources sources_;
  Timer look_, redraw_;
  RankFigures figures_;
};

}  // namespace fleetrun::launch
