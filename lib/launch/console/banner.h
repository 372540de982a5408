// The texts that PaddlePaddle's launcher prints before the workers start, byte for byte.
#pragma once
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/environment.h"
#include "launch/cli/flags/launch_options.h"

namespace fleetrun::launch {

// Thirteen arguments, sorted by name, values as Python's str() has them. Secrets among a job's variables are "***".
std::string configuration_banner(const LaunchOptions& options);

constexpr std::size_t kTableColumns = 93;  // of the published table

// The "Distributed Envs" table of the first worker. On a terminal with fewer columns it is narrower; on one that is too narrow for that it is
// a list of "NAME: value".
std::string environment_table(const Environment& worker, std::size_t columns = kTableColumns);

// "INFO 2021-01-19 14:50:52,903 fleetrun] <message>\n", local time.
std::string log_text(std::string_view level, std::chrono::system_clock::time_point time,
                     std::string_view message);

std::string python_list(const std::vector<std::string>& items);  // "['--lr', '0.1']"

}  // namespace fleetrun::launch
