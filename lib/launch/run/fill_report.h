// What is put into the report of a run: when it begins, after each attempt, when it ends.
#pragma once
#include <string>
#include <vector>

#include "base/error/error.h"
#include "base/system/environment.h"
#include "launch/logs/log_folder.h"
#include "launch/report/collective_records.h"
#include "launch/report/report.h"
#include "launch/run/run_plan.h"
#include "launch/supervise/process_group.h"
#include "launch/supervise/run_state.h"

namespace fleetrun::launch {

ExitReport begin_report(const RunPlan& plan);

// What is known of the present attempt; before its logs are moved.
void fill_attempt(const RunState& state, const Attempt& attempt, const LogFolder& logs, ExitReport& report);

// Where its ranks were in their collectives, if it went wrong; in files beside the logs, too.
void fill_collectives(const CollectiveRecords& records, const LogFolder& logs, ExitReport& report);

// The limit of this machine that explains the failure, if there is one. `environment` is that of rank 0.
void fill_limit(const Environment& environment, ExitReport& report);

// The attempt that was reported is to be followed by another one: its logs move to log/attempt-K/. Throws Error(create).
void archive_attempt(const LogFolder& logs, ExitReport& report);
bool is_archived(int attempt, const ExitReport& report);

// The run ended in the pause after an attempt that was kept: what was found out about its failure stays with it.
void fill_end_before_restart(const Verdict& verdict, ExitReport& report);

void end_report(const LogFolder& logs, ExitReport& report);

// fleetrun itself could not go on. A failure that was to be followed by another attempt stays the cause.
void end_report(const Error& error, ExitReport& report);

// As log/report.json. Throws Error(io).
void write_report(const LogFolder& logs, const ExitReport& report);

}  // namespace fleetrun::launch
