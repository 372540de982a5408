// Whether this node reaches an address of another host.
#pragma once
#include <chrono>

#include "base/system/endpoint.h"

namespace fleetrun::launch {

// The host accepts a TCP connection within that time, or refuses it. Blocks meanwhile.
bool answers(const Endpoint& endpoint, std::chrono::milliseconds patience);

}  // namespace fleetrun::launch
