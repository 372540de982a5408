// A run with default options, for tests of what a run writes and looks at.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/report/report.h"
#include "launch/run/run_plan.h"
#include "launch/supervise/run_state.h"

namespace fleetrun::launch {

struct PlainRun {
  RunPlan plan() const {
    return {.options = options,
            .environment = environment,
            .program = program,
            .embedded = embedded,
            .wrapped = wrapped,
            .cluster = cluster,
            .warnings = warnings};
  }
  RunState state() const { return {report.verdict, workers, pages, survivors}; }

  LaunchOptions options;
  Environment environment;
  Program program;
  std::optional<EmbeddedRuntime> embedded;
  std::map<int, Program> wrapped;
  std::vector<std::string> warnings;
  ClusterSpec cluster;
  ExitReport report;
  std::vector<WorkerRecord> workers;
  std::vector<ProgressPagePtr> pages;
  std::vector<pid_t> survivors;
};

}  // namespace fleetrun::launch
