// The communicator of a world with one rank: every collective is a copy at most.
#pragma once
#include <memory>

#include "comm/collective/communicator.h"

namespace fleetrun::comm {

std::unique_ptr<Communicator> make_solo();

}  // namespace fleetrun::comm
