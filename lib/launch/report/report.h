// How a run ended, for people on stderr and for programs in log/report.json.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json_value.h"
#include "launch/loop/clock.h"
#include "launch/plan/stop_plan.h"
#include "launch/report/collective_records.h"
#include "launch/report/death_evidence.h"
#include "launch/supervise/run_state.h"
#include "launch/supervise/straggler_rules.h"
#include "launch/supervise/supervisor.h"

namespace fleetrun::launch {

// An attempt that was followed by another one.
struct AttemptRecord {
  int number = 0;
  std::string message;
  int exit_code = 0;
  std::string logs;  // folder
  std::chrono::system_clock::time_point ended;
};

// On the first node of several: how long no rank worked between two attempts.
struct StandStillRecord {
  int attempt = 0;  // that began after it
  std::string why;
  int nodes = 0;                                        // of that attempt
  std::string first_node;                               // that took over; "": the first node stayed
  std::vector<std::pair<std::string, double>> seconds;  // of each part, in their order
};

// A rank that was slower than the others (launch/supervise/straggler_rules.h).
struct StragglerRecord {
  int attempt = 0;
  std::uint64_t step = 0;  // when it was found
  std::string host;
  Straggler found;

  std::string describe() const;  // "rank 3 on beta is slow in compute: ..."
};

// How long the ranks of a job needed until they worked again: seconds of each part, in their order; fewer parts when the
// attempt ended before.
using AttemptStart = std::vector<std::pair<std::string, double>>;

// Over several nodes: how the whole run ended, as the first node decided.
struct WholeRun {
  std::string cause;    // as in report.json
  std::string message;  // one line
  std::string block;    // for stderr
  int exit_code = 0;
  std::optional<int> stop_signal;      // of the cause "stopped"
  std::optional<int> rank;             // the first to fail
  JsonValue evidence;                  // evidence_json() of the node where it happened; else null
  JsonValue ranks;                     // on the first node: of all nodes; else null
  std::vector<std::string> roll_call;  // likewise; else empty
};

// What a rank had written when another one, which had lost the connection to it, ended before it.
struct EarlierError {
  int rank = 0;           // of this node
  std::string exception;  // "FileNotFoundError: /data/shard-3.bin (train.py:12, in main)"
  std::string log;        // its file
  std::vector<std::string> last_lines;
  TimePoint written = {};      // when the rank last wrote there
  bool may_be_caught = false;  // the rank may have printed an exception that it caught
};

// The second log of a rank that logs stdout and stderr apart. The first log tells more about the failure.
struct OtherLog {
  std::string path;  // "": there is none
  std::vector<std::string> last_lines;
};

// Lines that a rank of a job could not write to its log.
struct LostLines {
  int rank = 0;                         // of this node
  std::vector<std::string> last_lines;  // empty: no line was lost
};

struct ExitReport {
  std::string run_id, job_id, host;
  std::vector<std::string> command;  // of a worker
  std::vector<std::string> ran;      // by the rank that failed, where it is another one: under --debug_rank
  std::vector<std::string> logs;     // of each rank, as people see the path
  std::vector<WorkerRecord> workers;
  Verdict verdict;
  std::vector<std::string>
      survivors;  // processes that not even SIGKILL ended: "pid 7, waiting for a device (D)"
  std::vector<std::string> last_lines;        // of the log of the first failure
  OtherLog other_log;                         // of the same rank
  int log_problem = 0;                        // errno, when that log cannot be read
  bool error_was_shown = false;               // among them is the error of a job, which stands above already
  MemoryCgroup memory_before;                 // as the attempt began
  DeathEvidence evidence;                     // of the first failure
  std::optional<EarlierError> earlier_error;  // that explains the first failure, or one on another node
  std::vector<std::string> roll_call;         // what the ranks were doing when it was last asked
  CollectiveRecords collectives;      // of the embedded runtime: as the roll was called, or at the end
  std::optional<std::uint64_t> step;  // of the first failure, when the embedded runtime told
  bool log_disk_full = false;         // during the run: lines of logs are missing
  LostLines lost_lines;               // of the first failure, or of the first rank that has lost some
  std::vector<StandStillRecord> stand_stills;
  std::vector<StragglerRecord> stragglers;  // on the first node of several: of all nodes; on the others: none
  std::map<int, AttemptStart> starts;       // of the attempts of a job
  std::vector<AttemptRecord> attempts;      // before the one that the rest describes
  std::optional<std::string> error;         // why fleetrun itself could not go on; then there is no verdict
  std::string train;                        // text of log/train.json, "" when there is none
  Saved saved = Saved::unknown;             // what the ranks of a job have left on the disk
  std::string going_on;  // lines for the user after a stop: the command that goes on; "": none
  Moment started, ended;
  bool has_begun = false;         // its first lines were shown, and then ranks started
  std::optional<WholeRun> whole;  // none: this node is alone

  bool has_ended() const { return ended.steady != TimePoint(); }
};

// The block on stderr: what failed and where to look. When all went well, only lines that could not be written to a log.
std::string describe(const ExitReport& report);

// One line, the moment the first failure is noticed: "rank 1 exited with code 3".
std::string describe_cause(const Verdict& verdict, const std::vector<std::string>& command);

// The same with what the evidence adds: "..., out of memory", "...: ValueError: bad batch (train.py:12, in main)".
std::string describe_failure(const ExitReport& report);

// "rank 1 had written an error before: FileNotFoundError: ..."; "": none had.
std::string describe_earlier_error(const ExitReport& report);
JsonValue earlier_error_json(const ExitReport& report);  // null: none had
// Lines for stderr: the sentence and the end of the log; "": there is none.
std::string earlier_error_text(const ExitReport& report);

// What ended the attempt on this node: the sentence, the evidence, the last lines.
std::string describe_end(const ExitReport& report);
// The same for the console of another node, on which the error of a job was not shown.
std::string describe_end_elsewhere(ExitReport report);

JsonValue ranks_json(const ExitReport& report);  // of this node
JsonValue stragglers_json(const ExitReport& report);

// What is known of the first failure here, as members of report.json: last_lines, exception, evidence.
JsonValue evidence_json(const ExitReport& report);

// The signal that stopped the run; none: it ended otherwise.
std::optional<int> stop_signal(const ExitReport& report);

JsonValue report_value(const ExitReport& report);
std::string report_json(const ExitReport& report);  // the text of report.json

}  // namespace fleetrun::launch
