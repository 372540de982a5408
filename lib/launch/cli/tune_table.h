// `fleetrun tune`: what is asked for in words, and what the ranks found as a table.
#pragma once
#include <string>
#include <vector>

#include "base/json/json_value.h"
#include "base/run/tune_request.h"
#include "launch/cli/flags/read_flags.h"

namespace fleetrun::launch {

std::vector<Flag> tune_flags();  // without those of the run

// Throws Error(usage) for a budget or a size that cannot be.
TuneRequest parse_tune_flags(const FoundFlags& found);

// "90", "90s", "3m", "1.5h" in seconds. Throws Error(usage).
double parse_duration(const std::string& source, const std::string& text);

// The settings of the result, "KEY.PATH=VALUE".
std::vector<std::string> tuned_settings(const JsonValue& result);

// The same as part of a job file: {"strategy": {"nccl_comm_num": 2}}.
JsonValue settings_as_job(const std::vector<std::string>& settings);

// What rank 0 wrote, for people.
std::string tune_table(const JsonValue& result);

}  // namespace fleetrun::launch
