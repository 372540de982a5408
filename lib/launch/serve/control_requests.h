// What a running fleetrun can be asked through its socket, as JSON on one line, and what it answers.
#pragma once
#include <string>
#include <vector>

#include "base/progress_page.h"
#include "launch/logs/log_folder.h"
#include "launch/report/report.h"
#include "launch/supervise/process_group.h"

namespace fleetrun::launch {

struct RunControl {  // all outlive it
  ProcessGroup& group;
  const LogFolder& logs;
  const ExitReport& report;
  const std::vector<ProgressPagePtr>& pages;  // none without the embedded runtime

  // {"do": "ps"}, {"do": "stop", "now": false} or {"do": "signal", "signal": 10, "ranks": "0,3-7"}; no ranks: all.
  // The answer to anything else is {"error": "..."}.
  std::string answer(const std::string& request, const std::string& sender) const;
};

}  // namespace fleetrun::launch
