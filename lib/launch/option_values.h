// From the text of a flag or variable to its value. Every error names the flag and quotes the text.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "job/job_spec.h"
#include "launch/clock.h"

namespace fleetrun::launch {

// All throw Error(usage); `source` is "--gpus" or "PADDLE_DEVICES".
int parse_count(const std::string& source, const std::string& text);           // 1 .. 65536
int parse_restarts(const std::string& source, const std::string& text);        // 0 .. 65536
std::uint16_t parse_port(const std::string& source, const std::string& text);  // 1 .. 65535
Clock::duration parse_seconds(const std::string& source, const std::string& text);
std::optional<Clock::duration> parse_deadline(const std::string& source, const std::string& text);  // 0: none
job::DeviceChoice parse_device(const std::string& source, const std::string& text);
bool parse_cgroup(const std::string& source, const std::string& text);  // auto, none

}  // namespace fleetrun::launch
