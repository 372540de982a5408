// What the page of a run shows, as plain data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json_value.h"
#include "base/run/time_use.h"
#include "launch/page/history.h"

namespace fleetrun::launch {

struct PageRank {
  int rank = 0;
  std::string state;           // "running", "exited with code 3"
  std::string role;            // of report.json: "primary", "stopped"; "" while the run goes on
  std::string log;             // relative to the page; "": it is on another node, or there is none
  std::uint64_t steps = 0;     // that the times below belong to
  TimeUses spent_ns{};         // of the embedded runtime
  std::uint64_t peak_kib = 0;  // most memory that its process held; 0: not known
};

// A run that was followed by another attempt.
struct PageAttempt {
  int number = 0;
  std::string message, folder;  // relative to the page
};

// Only at the end of a run.
struct PageEnd {
  std::string cause, message;  // as in report.json
  int exit_code = 0;
  std::string exception;
  std::vector<std::string> evidence, last_lines, roll_call;
  std::string text;  // what fleetrun printed about it; "" after a success
};

// A key of the job.
struct PageKey {
  std::string key, value, origin;
  bool is_set = false;  // false: a default
};

struct PageFacts {
  std::string name, run_id, host, command, version;
  std::string started;         // UTC
  double seconds = 0;          // since then, or until the end
  std::optional<PageEnd> end;  // none: the run goes on
  std::string progress;        // one line about a training that goes on; "" for other programs
  std::vector<PageRank> ranks;
  std::vector<PageAttempt> attempts;
  std::vector<std::string> notes;  // slow ranks, interruptions
  std::vector<PageKey> job;        // empty for other programs
  std::vector<std::string> files;  // in the log folder, to link
  History history;
};

// What a report (report_value() of launch/report/report.h) says. `first` and `count`: the ranks of this node, whose logs
// are in the folder of the page.
PageFacts read_report_facts(const JsonValue& report, int first, int count);

}  // namespace fleetrun::launch
