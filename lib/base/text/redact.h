// Values of variables for files that others may read, and for the console.
#pragma once
#include <string>

namespace fleetrun {

// "***" if the name looks like that of a secret, such as API_TOKEN; otherwise the value, with "***" for passwords in addresses.
std::string redact(const std::string& name, const std::string& value);

// Redacts the value in "NAME=VALUE" or "RANK:NAME=VALUE". Returns any other text unchanged.
std::string redact_setting(const std::string& setting);

}  // namespace fleetrun
