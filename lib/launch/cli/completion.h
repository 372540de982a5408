// What makes a shell complete fleetrun's command line.
#pragma once
#include <string>
#include <vector>

#include "launch/cli/flag.h"

namespace fleetrun::launch {

// `shell` is bash, zsh or fish. Throws Error(usage) for others.
std::string completion(const std::string& shell, const std::vector<Option>& table);

}  // namespace fleetrun::launch
