// From the text of a flag or variable to its value. Every error names the flag and quotes the text.
#pragma once
#include <cstdint>
#include <string>

#include "job/job_spec.h"
#include "launch/clock.h"

namespace fleetrun::launch {

// All throw Error(usage); `source` is "--gpus" or "PADDLE_DEVICES".
int parse_count(const std::string& source, const std::string& text);           // 1 .. 65536
std::uint16_t parse_port(const std::string& source, const std::string& text);  // 1 .. 65535
Clock::duration parse_seconds(const std::string& source, const std::string& text);
job::DeviceChoice parse_device(const std::string& source, const std::string& text);

}  // namespace fleetrun::launch
