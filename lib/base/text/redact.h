// Values of variables for files that others may read.
#pragma once
#include <string>
#include <vector>

namespace fleetrun {

// "***" if the name looks like that of a secret, such as API_TOKEN; otherwise the value, with "***" for passwords in addresses.
std::string redact(const std::string& name, const std::string& value);

// The words of a command line. The words "env.NAME=VALUE" set variables of a job; their values are redacted.
std::vector<std::string> redact_variables(std::vector<std::string> words);

}  // namespace fleetrun
