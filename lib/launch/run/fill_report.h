// Fills the report of a run: when the run begins, after each attempt, and when the run ends.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "base/system/environment.h"
#include "launch/logs/log_folder.h"
#include "launch/nodes/coordinator.h"
#include "launch/report/collective_records.h"
#include "launch/report/report.h"
#include "launch/run/last_words.h"
#include "launch/run/run_plan.h"
#include "launch/supervise/process_group.h"
#include "launch/supervise/run_state.h"

namespace fleetrun::launch {

ExitReport begin_report(const RunPlan& plan);

// Whether standard output, which gets these logs, has shown the error with which a rank of a job file ended. Nobody needs it twice.
bool has_shown_error(const ExitReport& report, const ConsolePlan& console);

// Adds what is known about the present attempt. Call it before the logs move. If `words` knows no failure, the whole log of the rank that
// failed counts.
void fill_attempt(const RunState& state, const Attempt& attempt, const LogFolder& logs,
                  const LastWords& words, ExitReport& report);
// All ranks of this node have ended with 0. Adds an error that one of them has written, for the case that a rank of another node fails.
void fill_error_before_end(const LastWords& words, ExitReport& report);
void fill_survivors(const RunState& state, ExitReport& report);  // once all has been done to end them

// If the attempt failed, adds where its ranks were in their collectives, and writes that to files beside the logs.
void fill_collectives(const CollectiveRecords& records, const LogFolder& logs, ExitReport& report);

// Adds the limit of this machine that explains the failure, if there is one. `environment`: of this node's first rank.
void fill_limit(const Environment& environment, ExitReport& report);

// Another attempt follows: the reported one is an earlier one from now on.
void record_attempt(const LogFolder& logs, ExitReport& report);
// Moves its logs to log/attempt-K/. Throws Error(create).
void archive_attempt(const LogFolder& logs, ExitReport& report);
bool is_archived(int attempt, const ExitReport& report);

// The run ended in the pause after an archived attempt. Evidence of that attempt's failure does not explain this end,
// so it is removed.
void fill_end_before_restart(const Verdict& verdict, ExitReport& report);

// Adds to what the first node measured how long its own ranks took to start.
void fill_stand_stills(const std::vector<StandStill>& stand_stills, ExitReport& report);

// As the pages of this node's ranks in the present attempt tell it. Rank 0 knows it best, if it is here; others know what was planned.
Saved saved_by(const std::vector<ProgressPagePtr>& pages, bool with_rank_0);

// Sets the command that goes on after a stop, if the user can type one on this node, and what rank 0 told in its train.json.
void fill_going_on(const LogFolder& logs, const StopPlan& stop, ExitReport& report);

// fleetrun itself could not go on. If an earlier attempt failed, the run keeps that attempt's exit code.
void end_report(const Error& error, ExitReport& report);

// Writes log/report.json. Throws Error(io).
void write_report(const LogFolder& logs, const ExitReport& report);

}  // namespace fleetrun::launch
