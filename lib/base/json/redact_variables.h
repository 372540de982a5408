// The words of a command line for files that others may read, and for the console.
#pragma once
#include <string>
#include <vector>

namespace fleetrun {

// The words "env.NAME=VALUE" and "env={"NAME": "VALUE"}" set variables of a job; their values are redacted. Other words, and those without
// a secret, stay as they were typed.
std::vector<std::string> redact_variables(std::vector<std::string> words);

}  // namespace fleetrun
