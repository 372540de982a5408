// Values of variables for files that others may read.
#pragma once
#include <string>
#include <vector>

namespace fleetrun {

// "***" if the name looks like that of a secret, such as API_TOKEN; otherwise the value, with "***" for passwords in addresses.
std::string redact(const std::string& name, const std::string& value);

// A command line whose words "env.NAME=VALUE", the variables of a job, have redacted values.
std::vector<std::string> redact_variables(std::vector<std::string> words);

}  // namespace fleetrun
