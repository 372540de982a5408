// The present state of a run, for parts that only read it: report, roll call, hang rules, control socket and metrics.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/run/progress_page.h"
#include "launch/loop/clock.h"
#include "launch/supervise/events.h"
#include "launch/supervise/supervisor.h"

namespace fleetrun::launch {

struct WorkerRecord {
  pid_t pid = -1;  // -1: never started
  Moment started, ended;
  Clock::duration ended_earlier{};  // it ended at most this long before `ended`
  double cpu_seconds = 0;           // processor time without its children's; set when a signal has ended it
};

// A view of the present attempt: copy it. What it shows lives as long as the run.
struct RunState {
  const Verdict& verdict;
  const std::vector<WorkerRecord>& workers;   // in the order of the ranks
  const std::vector<ProgressPagePtr>& pages;  // one per rank; none without the embedded runtime
  const std::vector<pid_t>& survivors;        // processes still there after SIGKILL
};

// The highest step that a rank has done in this attempt, 0 if no rank has done one; none: the ranks have no pages.
std::optional<std::int64_t> highest_step(const std::vector<ProgressPagePtr>& pages);

// Whether this is the end of a rank that has trained to the end and saved the weights, and could not write the checkpoint of the end.
bool lacks_only_last_checkpoint(const Event& event, const std::vector<ProgressPagePtr>& pages);

}  // namespace fleetrun::launch
