// The names of the files in a log folder.
#pragma once
#include <string>
#include <string_view>

namespace fleetrun::launch {

inline constexpr const char *kReportName = "report.json", *kTrainReportName = "train.json",
                            *kEndpointsName = "endpoints.log", *kReserveName = ".reserve",
                            *kHistoryName = "history.csv", *kPageName = "report.html", *kTimesName = ".times",
                            *kControlName = ".control", *kNodesName = ".nodes";
inline constexpr const char* kPreviousFolder = "previous";  // the files of the run before
inline constexpr const char* kStopFolder =
    "checkpoint";  // of trainings that were stopped; no run removes anything there

bool is_numbered(std::string_view name, std::string_view start, std::string_view end);  // digits between them
bool is_of_a_rank(std::string_view name);   // "workerlog.0", "stacks.12"
bool is_error_file(std::string_view name);  // "error.0.json", which a worker writes
bool is_attempt(std::string_view name);     // "attempt-0", a folder
bool is_of_a_run(
    std::string_view name);  // any of a run, and what it is written as at first: "report.json.77.tmp"
// True if a run with the log folder `folder` writes a file of its own to `path`. Neither path needs to exist.
bool is_place_of_a_run(const std::string& folder, const std::string& path);
bool is_shown(
    std::string_view
        name);  // to whom watches the run: no hidden file, and none with variables of the environment
bool is_temporary(std::string_view name);  // such a one
std::string_view final_name(
    std::string_view name);            // "report.json" of "report.json.77.tmp"; others as they are
int number_in(std::string_view name);  // of the rank

// Where the newest logs of the ranks are: in the folder, or in its attempt-K/ when no attempt has begun after that one.
std::string newest_logs(const std::string& folder);

}  // namespace fleetrun::launch
