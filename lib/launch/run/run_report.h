// What is put into the report of a run: when it begins, after each attempt, when it ends.
#pragma once
#include <string>
#include <vector>

#include "base/progress_page.h"
#include "launch/logs/log_folder.h"
#include "launch/report/collective_records.h"
#include "launch/report/report.h"
#include "launch/run/run_node.h"
#include "launch/supervise/process_group.h"

namespace fleetrun::launch {

ExitReport begin_report(const NodeRun& run);

// What is known of the present attempt; before its logs are moved. `pages` are those of the embedded runtime.
void report_attempt(const ProcessGroup& group, const LogFolder& logs,
                    const std::vector<ProgressPagePtr>& pages, ExitReport& report);

// Where its ranks were in their collectives, if it went wrong; in files beside the logs, too.
void report_collectives(const CollectiveRecords& records, const LogFolder& logs, ExitReport& report);

// The attempt that was reported is followed by another one.
void keep_attempt(const LogFolder& logs, ExitReport& report);

void end_report(const LogFolder& logs, const std::vector<std::string>& roll_call, ExitReport& report);

// As log/report.json. Throws Error(io).
void write_report(const LogFolder& logs, const ExitReport& report);

}  // namespace fleetrun::launch
