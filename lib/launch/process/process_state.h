// The states of a process as /proc/PID/stat has them, in words.
#pragma once
#include <string>

namespace fleetrun::launch {

std::string name_state(char state);      // a word or two for a table: "sleeping", "waiting for I/O"
std::string describe_state(char state);  // what a person should know about it: "waiting for a device (D)"

}  // namespace fleetrun::launch
