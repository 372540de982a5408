// A command line of fleetrun for people and for files that others may read.
#pragma once
#include <string>
#include <vector>

namespace fleetrun::launch {

bool sets_variables(const std::string& flag);  // "--env", "-x", "--nccl"

// "***" for the secrets among the variables of a job and of flags such as --env; other words stay as they were typed.
std::vector<std::string> redact_command(std::vector<std::string> words);

}  // namespace fleetrun::launch
